"""The overview's figures and what needs attention, counted or estimated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.operators.overview import ApplicationFigures, Sampling, overview_of
from django_identity.models import (
    Consent,
    DailyTally,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TallyName,
)
from tests.records import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db


def seen() -> ApplicationFigures:
    return overview_of(application="default", environment="test")


def make_identities(count: int, **fields: Any) -> None:
    first = User.objects.count()
    users = User.objects.bulk_create(User(username=f"u{first + n}") for n in range(count))
    for user in users:
        make_identity(user, subject=f"subject-{user.username}", **fields)


def test_identities_are_counted_by_consent_level_and_life() -> None:
    """Exactly, while they are few, and each application and environment for itself."""
    now = timezone.now()
    make_identities(3)
    make_identities(2, kyc_level="", credential_expires_at=now + timedelta(minutes=5))
    make_identities(1, consent=Consent.REVOKED, credential_expires_at=None)
    make_identities(1, credential_expires_at=now - timedelta(minutes=5))
    make_identities(4, environment="live")
    found = seen()
    assert not found.is_sampled
    assert found.identities == 7
    assert found.by_consent == {
        ("granted", "level_2"): 4, ("granted", ""): 2, ("revoked", "level_2"): 1,
    }  # fmt: skip
    assert found.by_life == {"24h": 3, "1h": 2, "none": 1, "ran_out": 1}


def test_many_identities_are_estimated() -> None:
    """Above the limit, blocks of rows stand for all of them, and the figures say so."""
    few = Sampling(most_counted=100, blocks=10, block=5)
    make_identities(120)
    make_identities(80, consent=Consent.REVOKED)
    found = overview_of(application="default", environment="test", sampling=few)
    assert found.is_sampled
    assert found.identities == pytest.approx(200, rel=0.1)
    assert found.by_consent["revoked", "level_2"] == pytest.approx(80, rel=0.3)


def test_figures_are_kept_for_a_minute_and_attention_is_not() -> None:
    """A second look costs no count; what needs somebody is read each time."""
    make_identities(1)
    assert seen().identities == 1
    make_identities(1, refetch_failures=3, last_error="service_timeout")
    later = seen()
    assert later.identities == 1
    assert len(later.attention.failing.rows) == 1
    cache.clear()
    assert seen().identities == 2
    assert seen().failures == {"service_timeout": 1}


def test_what_needs_attention() -> None:
    """Pending erasures, failing re-fetches, failed handlers and grants that run out."""
    now = timezone.now()
    failing = make_identity(make_user(), refetch_failures=2)
    calm = make_identity(make_user("b"), subject="another")
    make_grant(failing, refresh_expires_at=now + timedelta(days=2))
    make_grant(calm, refresh_expires_at=now + timedelta(days=20))
    failed = make_event(calm, "claim.issued", outcome=EventOutcome.FAILED)
    make_event(calm, "claim.issued")
    receipt = ErasureReceipt.objects.create(
        application="default", environment="test", subject_digest="d", requested_at=now,
        next_attempt_at=now,
    )  # fmt: skip
    found = seen().attention
    assert found.failing.rows == (failing,)
    assert found.failed_events.rows == (failed,)
    assert found.ending_grants.rows == (failing.grant,)
    assert found.erasures.rows == (receipt,)
    assert not found.failing.is_more


def test_lists_are_cut_and_say_so() -> None:
    """Ten of each, and whether there are more."""
    make_identities(11, refetch_failures=1)
    failing = seen().attention.failing
    assert (len(failing.rows), failing.is_more) == (10, True)


def test_nothing_sealed_is_read() -> None:
    """Neither credentials nor tokens leave the database for this page."""
    identity = make_identity(make_user(), refetch_failures=1, credential="sealed")
    make_grant(identity, refresh_expires_at=timezone.now())
    found = seen().attention
    assert "credential" in found.failing.rows[0].get_deferred_fields()
    grant = found.ending_grants.rows[0]
    assert {"access_token", "refresh_token"} <= grant.get_deferred_fields()
    assert "credential" in grant.identity.get_deferred_fields()


def test_days_are_counted_as_they_pass() -> None:
    """Each kind in a row of its own a day; days without one count nothing; thirty are shown."""
    application = conf.application()
    tallies.add(TallyName.SIGNED_IN, application=application)
    tallies.add(TallyName.SIGNED_IN, application=application, count=4)
    tallies.add(TallyName.REFETCHED, application=application, count=0)
    found = seen()
    assert [day.count for day in found.sign_ins] == [0] * 29 + [5]
    assert [day.count for day in found.refetches] == [0] * 30
    assert DailyTally.objects.count() == 1


def test_no_identities_at_all() -> None:
    """A new site has an overview too."""
    assert not LinkedIdentity.objects.exists()
    assert seen().identities == 0
    assert seen().events_since is None
