"""The overview's figures and what needs attention."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.operators.overview import Figures, Overview, overview_of
from django_identity.models import Consent, ErasureReceipt, EventOutcome, LinkedIdentity
from tests.admin.operators import OVERVIEW, page, superuser
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db


def seen() -> Overview:
    return overview_of(conf.application())


def figures() -> Figures:
    return seen().figures


def make_identities(count: int, **fields: Any) -> None:
    first = User.objects.count()
    users = User.objects.bulk_create(User(username=f"u{first + n}") for n in range(count))
    for user in users:
        make_identity(user, subject=f"subject-{user.username}", **fields)


def test_identities_are_counted_by_consent_level_and_life() -> None:
    """Each application and environment for itself."""
    now = timezone.now()
    make_identities(3)
    make_identities(2, kyc_level="", credential_expires_at=now + timedelta(minutes=5))
    make_identities(1, consent=Consent.REVOKED, credential_expires_at=None)
    make_identities(1, credential_expires_at=now - timedelta(minutes=5))
    make_identities(4, environment="live")
    found = figures()
    assert found.by_consent == {
        ("granted", "level_2"): 4, ("granted", ""): 2, ("revoked", "level_2"): 1,
    }  # fmt: skip
    assert found.by_life == {"24h": 3, "1h": 2, "none": 1, "ran_out": 1}


@pytest.mark.urls("tests.admin.gated_urls")
def test_how_many_people_pass_each_gate_of_the_site() -> None:
    """By what a gate answers at this moment. Revoked people and other applications are nobody."""
    for name, country in (("ada", "NG"), ("ben", "EG"), ("eve", "NG")):
        identity = make_identity(make_user(name), subject=name)
        make_claim(identity, "age_over_18", name != "eve")
        make_claim(identity, "country_resident", {"country": country})
    make_claim(make_identity(make_user("fay"), subject="fay", consent=Consent.REVOKED))
    shown = page(superuser(), OVERVIEW)
    bars = r'<th scope="row">(\S[^<]*)</th>\s*<td>.*?</td>\s*<td>(\d+)</td>'
    counted = dict(re.findall(bars, shown, re.S))
    assert {"age_over_18": "2", "country_resident=NG": "2"}.items() <= counted.items()
    assert "recent_sign_in (10 min)" not in counted


def test_figures_are_kept_for_a_minute_and_rows_are_not() -> None:
    """A second look costs no count; the rows that need somebody are read each time."""
    assert seen().is_healthy
    make_identities(1, refetch_failures=3, last_error="service_timeout")
    ErasureReceipt.objects.create(application="default", requested_at=timezone.now())
    assert not seen().is_healthy
    assert not figures().by_consent
    cache.clear()
    assert figures().by_consent.total() == 1


def test_what_needs_attention() -> None:
    """Pending erasures and failed handlers."""
    identity, now = make_identity(make_user()), timezone.now()
    make_grant(identity, needs_reauthorization=True)
    assert seen().is_healthy, "a lost grant needs its person, not an operator"
    failed = make_event(identity, "claim.issued", outcome=EventOutcome.FAILED)
    make_event(identity, "claim.issued")
    for _ in range(11):
        receipt = ErasureReceipt.objects.create(application="default", requested_at=now)
    found = seen()
    assert not found.is_healthy
    assert list(found.failed_events) == [failed]
    assert len(found.erasures) == 10
    assert receipt not in found.erasures


def test_failing_refetches_are_grouped_by_reason() -> None:
    """Whose last error no longer counts as a failure is not among them."""
    make_identities(2, refetch_failures=1, last_error="service_timeout")
    make_identities(1, refetch_failures=1, last_error="client_rejected")
    make_identities(1, last_error="reauthorization_needed")
    assert figures().failures == {"service_timeout": 2, "client_rejected": 1}
    assert not seen().is_healthy


def test_days_are_counted_by_their_rows() -> None:
    """Days without a row count nothing; seven are shown, and nobody else's."""
    now = timezone.now()
    linked = make_identity(make_user())
    for number, days in enumerate((1, 1, 40)):
        made = make_identity(make_user(f"u{number}"), subject=f"s{number}")
        LinkedIdentity.objects.filter(pk=made.pk).update(created_at=now - timedelta(days=days))
    make_identity(make_user("b"), subject="b", application="other")
    make_event(linked, "kyc.verified", received_at=now)
    found = figures()
    assert list(found.linked.values()) == [0, 0, 0, 0, 0, 2, 1]
    assert list(found.received.values()) == [0, 0, 0, 0, 0, 0, 1]
