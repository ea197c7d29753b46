"""Service, site and database with clocks that are 90 seconds apart, in both directions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.lifecycle.upkeep import refetch_due
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.testing.clock import moved_clock
from tests.deliveries import SECRET, deliver
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService, hostile_service
from tests.lifecycle.test_consent import is_signed_in

pytestmark = pytest.mark.django_db(transaction=True)

ADULT = Requirement("age_over_18")
APART = 90
DATABASES_OWN_TIME = re.compile(r"\b(now\(|current_timestamp|clock_timestamp|getdate|unix_)", re.I)


@dataclass(frozen=True)
class Service:
    """``apart``: seconds by which its clock is ahead of the right time."""

    running: HostileService
    apart: int

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.apart, UTC)

    def issues_credentials(self, *, seconds_later: int = 0) -> None:
        issued_at = int(self.now().timestamp()) + seconds_later
        self.running.payload = {"iat": issued_at, "exp": issued_at + 86400}


@pytest.fixture(params=[("service", APART), ("service", -APART), ("site", APART), ("site", -APART)])
def service(request: pytest.FixtureRequest, settings: Any) -> Iterator[Service]:
    """Either its own clock is wrong, or the site's."""
    whose, seconds = request.param
    with hostile_service() as running, moved_clock() as clock:
        settings.DJANGO_IDENTITY = {"default": running.settings(WEBHOOK_SECRETS=[SECRET])}
        apart = seconds if whose == "service" else 0
        clock.advance(seconds=seconds - apart)
        made = Service(running, apart)
        made.issues_credentials()
        yield made


@pytest.fixture
def browser(service: Service) -> Client:
    signed_in = Client()
    sign_in(signed_in)
    assert is_signed_in(signed_in)
    return signed_in


def has_all() -> bool:
    standing = standing_of(LinkedIdentity.objects.get().user)
    return standing.has_claim(ADULT) and standing.has_kyc_level("level_2")


def test_a_sign_in_opens_the_gates(browser: Client) -> None:
    assert has_all()
    assert LinkedIdentity.objects.get().refetch_due_at > timezone.now()


def test_a_revocation_takes_effect_at_once(service: Service, browser: Client) -> None:
    """Stamped by the service's clock; and whoever comes back afterwards is in again."""
    deliver("consent.revoked", at=service.now())
    assert not is_signed_in(browser)
    assert not TokenGrant.objects.exists()
    again = Client()
    sign_in(again)
    assert is_signed_in(again)
    assert not is_signed_in(browser)
    assert has_all()


def test_a_revocation_on_the_way_refuses_the_sign_in(service: Service) -> None:
    browser = Client()
    sign_in(Client())
    state = begin(browser)
    deliver("consent.revoked", at=service.now())
    come_back(browser, state)
    assert not is_signed_in(browser)
    assert not TokenGrant.objects.exists()


@pytest.mark.parametrize(
    ("event_type", "about"),
    [("claim.revoked", {"claim_type": "age_over_18"}), ("kyc.rejected", {})],
)
def test_a_withdrawal_closes_until_the_service_says_otherwise(
    service: Service, browser: Client, event_type: str, about: dict[str, str]
) -> None:
    deliver(event_type, at=service.now(), **about)
    assert not has_all()
    # A credential from after the revocation.
    service.issues_credentials(seconds_later=1)
    list(refetch_due())
    assert has_all()


def test_a_consent_after_a_revocation_is_newer(service: Service, browser: Client) -> None:
    """Both by one clock, whichever it is."""
    at = service.now()
    deliver("consent.revoked", at=at)
    deliver("consent.granted", at=at + timedelta(seconds=1))
    deliver("consent.revoked", at=at + timedelta(seconds=2))
    assert not is_signed_in(browser)
    assert not has_all()


def test_the_databases_clock_is_never_asked(service: Service) -> None:
    """So it may differ by any time."""
    with CaptureQueriesContext(connection) as queries:
        sign_in(Client())
        deliver("kyc.verified", at=timezone.now())
        list(refetch_due())
        deliver("consent.revoked", at=timezone.now())
    asked = [query["sql"] for query in queries if DATABASES_OWN_TIME.search(query["sql"])]
    assert asked == []
