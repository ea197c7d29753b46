"""Events under clocks that differ: where time-stamps cannot tell, the withdrawal wins."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.models import Consent, LinkedIdentity, TokenGrant, WebhookEvent
from tests.deliveries import SECRET, deliver
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService
from tests.lifecycle.test_consent import is_signed_in
from tests.lifecycle.test_events import linked

pytestmark = pytest.mark.django_db(transaction=True)

ADULT = Requirement("age_over_18")
AGO = [timedelta(seconds=90), timedelta(minutes=4)]


@pytest.fixture
def signed_in(service: HostileService, settings: Any) -> Client:
    """Somebody who has just signed in, with a level and a proven claim."""
    settings.DJANGO_IDENTITY = {"default": service.settings(WEBHOOK_SECRETS=[SECRET], TIMEOUT=10)}
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)
    return browser


def told(event_type: str, *, ago: timedelta, **about: Any) -> LinkedIdentity:
    """The identity after an event with a time-stamp of so long ago."""
    deliver(event_type, at=timezone.now() - ago, **about)
    return LinkedIdentity.objects.get()


@pytest.mark.parametrize("ago", AGO)
def test_a_revocation_hardly_older_than_the_sign_in_ends_it(
    signed_in: Client, ago: timedelta
) -> None:
    """The person may have revoked after the sign-in, by a clock that is behind."""
    identity = told("consent.revoked", ago=ago)
    assert identity.consent == Consent.REVOKED
    assert not is_signed_in(signed_in)
    assert not TokenGrant.objects.exists()


@pytest.mark.parametrize("ago", AGO)
def test_a_rejection_hardly_older_than_the_sign_in_closes_the_gate(
    signed_in: Client, ago: timedelta
) -> None:
    """Until the re-fetch that it makes due says otherwise."""
    assert standing_of(LinkedIdentity.objects.get().user).has_kyc_level("level_1")
    identity = told("kyc.rejected", ago=ago)
    assert not standing_of(identity.user).has_kyc_level("level_1")
    assert identity.refetch_due_at <= timezone.now()


@pytest.mark.parametrize("ago", AGO)
def test_a_revoked_claim_hardly_older_than_the_sign_in_is_revoked(
    signed_in: Client, ago: timedelta
) -> None:
    """Until the re-fetch that it makes due proves it again."""
    assert standing_of(LinkedIdentity.objects.get().user).has_claim(ADULT)
    identity = told("claim.revoked", ago=ago, claim_type="age_over_18")
    assert not standing_of(identity.user).has_claim(ADULT)
    assert identity.refetch_due_at <= timezone.now()


@pytest.mark.parametrize("event_type", ["consent.revoked", "kyc.rejected", "claim.revoked"])
def test_a_withdrawal_from_well_before_the_sign_in_changes_nothing(
    signed_in: Client, event_type: str
) -> None:
    """Clocks do not differ by more than five minutes."""
    identity = told(event_type, ago=timedelta(minutes=6))
    assert is_signed_in(signed_in)
    assert standing_of(identity.user).has_kyc_level("level_1")
    assert standing_of(identity.user).has_claim(ADULT)


def test_two_rejections_hardly_older_end_alike_in_both_orders() -> None:
    """Which of two counts does not depend on which came first."""
    ends = set()
    now = timezone.now().replace(microsecond=0)
    both = [("one", now - timedelta(seconds=60)), ("two", now - timedelta(seconds=30))]
    for order in (both, both[::-1]):
        identity = linked(signed_in_at=now, kyc_changed_at=now, consent_changed_at=now)
        for name, at in order:
            deliver("kyc.rejected", event_id=f"{name}-{len(ends)}", at=at, provider="Vendor")
        identity.refresh_from_db()
        ends.add((identity.kyc_status, identity.kyc_changed_at))
        identity.user.delete()
    assert ends == {("rejected", now)}


@pytest.mark.parametrize("seconds", [-90, -1, 1])
def test_a_consent_from_the_future_withstands_no_later_revocation(seconds: int) -> None:
    """Whatever the revocation's own time-stamp is, by a clock that is right or behind."""
    linked(consent=Consent.REVOKED, consent_changed_at=timezone.now() - timedelta(minutes=10))
    deliver("consent.granted", at=timezone.now() + timedelta(minutes=4))
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    deliver("consent.revoked", at=timezone.now() + timedelta(seconds=seconds))
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


@pytest.mark.parametrize("ahead", [timedelta(seconds=90), timedelta(minutes=4), timedelta(days=9)])
def test_a_revocation_from_the_future_keeps_nobody_out(signed_in: Client, ahead: timedelta) -> None:
    """The site received it before the person pressed the button, so their consent is newer."""
    told("consent.revoked", ago=-ahead)
    assert not is_signed_in(signed_in)
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)
    assert not is_signed_in(signed_in)
    standing = standing_of(LinkedIdentity.objects.get().user)
    assert standing.has_kyc_level("level_1")
    assert standing.has_claim(ADULT)


@pytest.mark.parametrize("ago", [*AGO, timedelta(seconds=-90)])
def test_the_same_rule_holds_while_the_person_is_on_the_way(
    service: HostileService, signed_in: Client, ago: timedelta
) -> None:
    """A revocation that comes in then refuses the sign-in."""
    browser = Client()
    state = begin(browser)
    moment: datetime = timezone.now() - ago
    deliver("consent.revoked", at=moment)
    come_back(browser, state)
    assert not is_signed_in(browser)
    assert not TokenGrant.objects.exists()


def test_what_a_sign_in_applies_is_shown_as_applied(
    service: HostileService, signed_in: Client
) -> None:
    """The event found nobody linked; the sign-in on the way then found the event."""
    User.objects.all().delete()
    browser = Client()
    state = begin(browser)
    deliver("kyc.rejected", at=timezone.now() + timedelta(seconds=2))
    come_back(browser, state)
    event = WebhookEvent.objects.get()
    assert (event.outcome, LinkedIdentity.objects.get().kyc_status) == ("applied", "rejected")
