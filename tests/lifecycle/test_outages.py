"""Outages told apart: what pauses upkeep, what the log says, and that nobody loses anything."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import ServiceUnavailable
from django_identity.lifecycle.upkeep import refetch_due, sweep
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service import budget
from tests.hostile import HostileService, answer, html, http, refusal
from tests.records import make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

INVALID_CLIENT = answer({"error": "invalid_client"}, status="401 Unauthorized")
SUSPENDED = refusal("APP_SUSPENDED", "403 Forbidden")
GONE = timedelta(hours=1)


def due(number: int) -> None:
    """So many due identities whose access tokens have run out."""
    now = timezone.now()
    for index in range(number):
        identity = make_identity(
            make_user(f"u{index}"), subject=f"subject-{index}",
            scopes=["claims:read"], refetch_due_at=now - GONE,
        )  # fmt: skip
        make_grant(identity, refresh_token=f"rt-0-{index}", access_expires_at=now - GONE)


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.getMessage().startswith(event)]


def nothing_is_lost() -> bool:
    rows = LinkedIdentity.objects.filter(refetch_due_at=None) | LinkedIdentity.objects.filter(
        refetch_failures__gt=0
    )
    return not rows.exists() and not TokenGrant.objects.filter(needs_reauthorization=True).exists()


def test_rejected_credentials_close_upkeep(
    service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """One call, one ERROR line, and no row is counted as failed."""
    caplog.set_level(logging.INFO)
    due(8)
    service.answers["token"] = INVALID_CLIENT
    assert list(refetch_due()) == [Refetched.NOT_NOW]
    assert list(refetch_due()) == []
    assert sweep() == 0
    assert service.calls("token") == 1
    assert nothing_is_lost()
    (line,) = lines(caplog, "identity.service.away")
    assert line.levelno == logging.ERROR
    assert "ClientRejected" in line.getMessage()


def test_rejected_credentials_are_nobodys_failure_without_a_cache(
    service: HostileService, settings: Any
) -> None:
    """A cache that is down forgets the pause. The rows have failed no more for that."""
    backend = "django.core.cache.backends.dummy.DummyCache"
    settings.CACHES = {"default": {"BACKEND": backend}}
    due(3)
    service.answers["token"] = INVALID_CLIENT
    assert list(refetch_due()) == [Refetched.NOT_NOW]
    assert nothing_is_lost()


def test_one_probe_a_minute(service: HostileService, caplog: pytest.LogCaptureFixture) -> None:
    """The probe that is refused too is followed by another minute, and by no other line."""
    due(4)
    service.answers["token"] = INVALID_CLIENT
    assert list(refetch_due()) == [Refetched.NOT_NOW]
    for _ in range(3):
        a_minute_passes()
        assert list(refetch_due()) == [Refetched.NOT_NOW]
        assert list(refetch_due()) == []
    assert service.calls("token") == 4
    assert len(lines(caplog, "identity.service.away")) == 1


def a_minute_passes() -> None:
    """The end of the pause, and of the one of the grant that was the probe."""
    for endpoint in ("token", "claims"):
        cache.delete(budget.name_of(conf.application(), f"{endpoint}.closed"))
    TokenGrant.objects.update(retry_at=None)


def test_new_credentials_open_upkeep_again(
    service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Coming back is a line of its own, and the rows have their turn."""
    caplog.set_level(logging.INFO)
    service.disclosed = {}
    due(3)
    service.answers["token"] = INVALID_CLIENT
    assert list(refetch_due()) == [Refetched.NOT_NOW]
    service.answers.clear()
    a_minute_passes()
    list(refetch_due())
    # The row that was the probe comes again a minute later.
    assert service.calls("token") == 3
    (line,) = lines(caplog, "identity.service.back")
    assert line.levelno == logging.INFO
    assert not budget.is_away(conf.application())


@pytest.mark.parametrize(
    "bad",
    [SUSPENDED, html("403 Forbidden"), html(), http(b'{"broken'), http(b"{}", status="400 Bad")],
    ids=["suspended", "403 page", "page", "unreadable", "no envelope"],
)
@pytest.mark.parametrize("endpoint", ["token", "claims"])
def test_only_the_services_own_no_is_believed(
    service: HostileService, caplog: pytest.LogCaptureFixture, endpoint: str, bad: bytes
) -> None:
    """Anything else is an outage: nothing is dropped, and five in a row pause upkeep."""
    due(7)
    service.answers[endpoint] = bad
    list(refetch_due())
    assert service.calls(endpoint) == budget.FAILURES_IN_A_ROW
    assert budget.is_away(conf.application())
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    (line,) = lines(caplog, "identity.service.away")
    assert f"endpoint={endpoint}" in line.getMessage()


def test_a_lost_grant_is_a_line_of_its_own(
    service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """With the row and the reason, and nothing of the person."""
    due(2)
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
    list(refetch_due())
    both = lines(caplog, "identity.grant.lost")
    assert len(both) == 2
    assert all("reason=invalid_grant" in line.getMessage() for line in both)
    assert "subject-0" not in caplog.text


def test_a_site_without_claims_pauses_by_its_kyc_calls(
    service: HostileService, settings: Any
) -> None:
    """Upkeep of such a site calls /kyc, so that endpoint says whether the service is away."""
    settings.DJANGO_IDENTITY = {"default": service.settings(SCOPES=["profile:read", "kyc:read"])}
    for _ in range(budget.FAILURES_IN_A_ROW):
        budget.note(conf.application(), "kyc", ServiceUnavailable())
    assert budget.is_away(conf.application())
