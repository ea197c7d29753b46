"""The overview's figures and what needs attention."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from django_identity.lifecycle.operators.overview import (
    Attention,
    Figures,
    attention_of,
    figures_of,
)
from django_identity.models import (
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
)
from tests.factories import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db


def seen() -> Figures:
    return figures_of("default", "test")


def attention() -> Attention:
    return attention_of("default", "test")


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
    found = seen()
    assert found.identities == 7
    assert found.by_consent == {
        ("granted", "level_2"): 4, ("granted", ""): 2, ("revoked", "level_2"): 1,
    }  # fmt: skip
    assert found.by_life == {"24h": 3, "1h": 2, "none": 1, "ran_out": 1}


def test_figures_are_kept_for_a_minute_and_attention_is_not() -> None:
    """A second look costs no count; what needs somebody is read each time."""
    make_identities(1)
    assert seen().identities == 1
    make_identities(1, refetch_failures=3, last_error="service_timeout")
    assert seen().identities == 1
    assert attention().failures == (("service_timeout", 1),)
    cache.clear()
    assert seen().identities == 2


def test_what_needs_attention() -> None:
    """Pending erasures, failing re-fetches, failed handlers and grants that run out."""
    now = timezone.now()
    assert attention().is_healthy
    failing = make_identity(make_user(), refetch_failures=2, last_error="rate_limited")
    calm = make_identity(make_user("b"), subject="another")
    make_grant(failing, refresh_expires_at=now + timedelta(days=2))
    make_grant(calm, refresh_expires_at=now + timedelta(days=20))
    failed = make_event(calm, "claim.issued", outcome=EventOutcome.FAILED)
    make_event(calm, "claim.issued")
    receipt = ErasureReceipt.objects.create(
        application="default", requested_at=now,
        next_attempt_at=now,
    )  # fmt: skip
    found = attention()
    assert not found.is_healthy
    assert found.failures == (("rate_limited", 1),)
    assert found.failed_events.rows == (failed,)
    assert found.ending_grants.rows == (failing.grant,)
    assert found.erasures.rows == (receipt,)
    assert not found.erasures.is_more


def test_failures_are_grouped_by_reason() -> None:
    """The commonest first, and lists are cut and say so."""
    make_identities(11, refetch_failures=1, last_error="service_timeout")
    make_identities(2, refetch_failures=1, last_error="client_rejected")
    assert attention().failures == (("service_timeout", 11), ("client_rejected", 2))
    for _ in range(11):
        ErasureReceipt.objects.create(application="default", requested_at=timezone.now())
    erasures = attention().erasures
    assert (len(erasures.rows), erasures.is_more) == (10, True)


def test_nothing_sealed_is_read() -> None:
    """Neither credentials nor tokens leave the database for this page."""
    identity = make_identity(make_user(), refetch_failures=1)
    make_grant(identity, refresh_expires_at=timezone.now())
    found = attention()
    grant = found.ending_grants.rows[0]
    assert {"access_token", "refresh_token"} <= grant.get_deferred_fields()


def test_days_are_counted_by_their_rows() -> None:
    """Days without a row count nothing; thirty are shown, and nobody else's."""
    now = timezone.now()
    linked = make_identity(make_user())
    for number, days in enumerate((1, 1, 40)):
        made = make_identity(make_user(f"u{number}"), subject=f"s{number}")
        LinkedIdentity.objects.filter(pk=made.pk).update(created_at=now - timedelta(days=days))
    make_identity(make_user("b"), subject="b", application="other")
    make_event(linked, "kyc.verified", received_at=now)
    found = seen()
    assert [day.count for day in found.linked] == [0] * 28 + [2, 1]
    assert [day.count for day in found.received] == [0] * 29 + [1]


def test_no_identities_at_all() -> None:
    """A new site has an overview too."""
    assert not LinkedIdentity.objects.exists()
    assert seen().identities == 0
    assert attention().is_healthy
