"""The overview's figures and what needs attention."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle import runs
from django_identity.lifecycle.operators import overview
from django_identity.lifecycle.operators.overview import Overview, kept
from django_identity.models import (
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    UpkeepRun,
)
from tests.factories import (
    LONG_AGO,
    make_event,
    make_grant,
    make_identity,
    make_user,
)

pytestmark = pytest.mark.django_db


def seen() -> Overview:
    return overview.current()


def make_identities(count: int, **fields: Any) -> None:
    first = User.objects.count()
    for number in range(first, first + count):
        make_identity(make_user(f"u{number}"), subject=f"s{number}", **fields)


def test_the_overview_counts_identities_by_consent_level_and_failure() -> None:
    """By consent and level, life, and reason of a failure; each environment for itself."""
    now, failing = (
        timezone.now(),
        {"refetch_failures": 1, "last_error": "service_timeout"},
    )
    make_identities(2, **failing)
    make_identities(1, last_error="reauthorization_needed")
    make_identities(2, kyc_level="", credential_expires_at=now + timedelta(minutes=5))
    make_identities(1, consent=Consent.REVOKED, credential_expires_at=None)
    make_identities(1, credential_expires_at=now - timedelta(minutes=5))
    make_identities(4, environment="live", **failing)
    found = seen().figures
    assert found.by_consent == {
        ("granted", "level_2"): 4, ("granted", ""): 2, ("revoked", "level_2"): 1,
    }  # fmt: skip
    assert found.by_life == {"24h": 3, "1h": 2, "none": 1, "ran_out": 1}
    assert found.failures == {"service_timeout": 2}
    assert not seen().is_healthy


def test_figures_are_kept_for_a_minute_and_rows_are_not() -> None:
    """A second look costs no count; the rows that need somebody are read each time."""
    assert seen().is_healthy
    make_identities(1, refetch_failures=3, last_error="service_timeout")
    ErasureReceipt.objects.create(requested_at=timezone.now())
    assert not seen().is_healthy
    assert not seen().figures.by_consent
    cache.clear()
    assert seen().figures.by_consent.total() == 1


@pytest.mark.parametrize(("takes", "kept_for"), [(0.0, 60), (0.8, 80)])
def test_what_takes_long_to_count_is_kept_longer(
    monkeypatch: pytest.MonkeyPatch, takes: float, kept_for: int
) -> None:
    """A hundred times as long as it took, so counting takes a hundredth of the time at most."""
    counted: list[float] = []

    def count() -> str:
        counted.append(takes)
        return "figures"

    # Of this clock, time passes with each count alone.
    monkeypatch.setattr(overview, "monotonic", lambda: sum(counted))
    began = time.time()
    for passed, times in ((0, 1), (kept_for - 5, 1), (kept_for + 30, 2)):
        with monkeypatch.context() as later:
            later.setattr(time, "time", lambda passed=passed: began + passed)
            assert kept("figures", count) == "figures"
        assert len(counted) == times


def test_the_overview_names_pending_erasures_and_failed_handlers() -> None:
    """Pending erasures and failed handlers."""
    identity, now = make_identity(make_user()), timezone.now()
    make_grant(identity, needs_reauthorization=True)
    assert seen().is_healthy, "a lost grant needs its person, not an operator"
    failed = make_event(identity, "claim.issued", outcome=EventOutcome.FAILED)
    make_event(identity, "claim.issued")
    for _ in range(11):
        receipt = ErasureReceipt.objects.create(requested_at=now)
    found = seen()
    assert not found.is_healthy
    assert list(found.failed_events) == [failed]
    assert len(found.erasures) == 10
    assert receipt not in found.erasures


def test_the_newest_run_of_upkeep_is_shown(admin_client: Client) -> None:
    """When it ran, what it did, and the pause; late re-fetches need an operator."""
    address = reverse("admin:django_identity_overview_changelist")
    assert "Upkeep has not run yet." in admin_client.get(address).content.decode()
    runs.begin()
    runs.note(
        {"stored": 3, "stored, but the level could not be read": 1, "failed": 1},
    )
    runs.pause(until=timezone.now() + timedelta(hours=1))
    make_identities(1, refetch_due_at=timezone.now() - timedelta(minutes=14))
    assert seen().is_healthy
    make_identities(1, refetch_due_at=timezone.now() - timedelta(minutes=16))
    assert not seen().is_healthy
    page = admin_client.get(address).content.decode()
    for words in (
        "Upkeep last ran",
        "Re-fetches: 5, stored: 4,",
        "Re-fetches pause until",
    ):
        assert words in page
    assert '<a href="#identity-upkeep">Re-fetches are late.</a>' in page


@pytest.mark.parametrize(
    "waits",
    [
        {"next_attempt_at": LONG_AGO},
        {"outcome": "", "received_at": LONG_AGO, "error": "OperationalError"},
    ],
    ids=["for its handlers", "to be applied"],
)
def test_an_event_that_waits_needs_an_operator(
    admin_client: Client, waits: dict[str, Any]
) -> None:
    """One that fails to be applied may be a revocation, and is due again only later."""
    due_later = {"next_attempt_at": timezone.now() + timedelta(hours=5)}
    make_event(make_identity(make_user()), "consent.revoked", **{**due_later, **waits})
    assert not seen().is_healthy
    address = reverse("admin:django_identity_overview_changelist")
    assert "Events are late." in admin_client.get(address).content.decode()


@pytest.mark.parametrize("days", [-1, 1], ids=["ago", "ahead, by a clock set back"])
def test_upkeep_that_does_not_run_needs_an_operator(
    admin_client: Client, days: int
) -> None:
    """As soon as somebody has a re-fetch before them, and not only when it is late."""
    begun_at = timezone.now() + timedelta(days=days)
    UpkeepRun.objects.create(begun_at=begun_at)
    assert seen().is_healthy
    make_identities(1, refetch_due_at=timezone.now() + timedelta(hours=9))
    assert not seen().is_healthy
    address = reverse("admin:django_identity_overview_changelist")
    assert "Upkeep does not run." in admin_client.get(address).content.decode()


def test_days_are_counted_by_their_rows() -> None:
    """Days without a row count nothing; seven are shown, and nobody else's."""
    now = timezone.now()
    linked = make_identity(make_user())
    for number, days in enumerate((1, 1, 40)):
        made = make_identity(make_user(f"u{number}"), subject=f"s{number}")
        LinkedIdentity.objects.filter(pk=made.pk).update(
            created_at=now - timedelta(days=days)
        )
    make_identity(make_user("b"), subject="b", environment="live")
    make_event(linked, "kyc.verified", received_at=now)
    found = seen().figures
    assert list(found.linked.values()) == [0, 0, 0, 0, 0, 2, 1]
    assert list(found.received.values()) == [0, 0, 0, 0, 0, 0, 1]
