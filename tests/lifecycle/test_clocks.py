"""Two clocks that differ by seconds or minutes: what is taken away stays so, what came is read."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.standing.shortfalls import Reason, Shortfall
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.requirements import RequiredClaim
from tests.deliveries import deliver
from tests.factories import (
    again,
    make_claim,
    make_grant,
    make_identity,
    make_user,
)
from tests.lifecycle.refetches import refetched

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def person(**fields):
    """Somebody who has just signed in; the next re-fetch is hours away."""
    now = timezone.now()
    held = {
        "signed_in_at": now,
        "kyc_said_at": now,
        "credential_issued_at": now,
        "refetch_due_at": now + 18 * HOUR,
        "scopes": ["kyc:read", "claims:read"],
        **fields,
    }
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    make_grant(identity)
    return identity


def is_due():
    return LinkedIdentity.objects.get().is_due


def is_open(identity):
    standing = standing_of(again(identity.user))
    return standing.shortfall(RequiredClaim("age_over_18")) is None


def newest_outcome():
    return WebhookEvent.objects.latest("pk").outcome


# The service's clock is ahead


def test_a_revocation_of_all_claims_stays_too(service):
    """The level keeps the time of the service's newest answer."""
    ahead = timezone.now() + 3 * MINUTE
    identity = person(signed_in_at=timezone.now() - HOUR, credential_issued_at=ahead)
    deliver("claim.revoked")
    revoked_at = StoredClaim.objects.get().revoked_at
    assert revoked_at is not None
    assert revoked_at > ahead
    held = LinkedIdentity.objects.get(pk=identity.pk)
    assert (held.kyc_status, held.kyc_said_at) == ("", identity.kyc_said_at)


# The service's clock is behind


@pytest.mark.parametrize("event_type", ["kyc.verified", "claim.issued"])
@pytest.mark.parametrize("behind", [5 * SECOND, 4 * MINUTE, 6 * MINUTE, HOUR])
def test_what_brings_something_is_read_from_the_service(event_type, behind):
    """However old it seems. Its own statement never counts."""
    person(kyc_status="unverified", kyc_level="")
    deliver(
        event_type, at=timezone.now() - behind, kyc_level="level_2", status="verified"
    )
    assert is_due()
    assert newest_outcome() == "applied"
    assert LinkedIdentity.objects.get().kyc_status == "unverified"


@pytest.mark.parametrize("behind", [0, 60])
def test_a_verification_on_another_machine_of_the_site_is_read(service, behind):
    """Its clock is a little behind that of the machine that has just asked the service."""
    person(kyc_status="unverified", kyc_level="", credential_issued_at=None)
    deliver("kyc.verified")
    lately = timezone.now() - timedelta(seconds=behind)
    WebhookEvent.objects.update(received_at=lately)
    assert refetched(LinkedIdentity.objects.get()) is Refetched.STORED
    assert service.calls("kyc") == 1


# A clock of the site was ahead


@pytest.mark.parametrize(
    "event_type", ["consent.revoked", "claim.revoked", "kyc.rejected"]
)
def test_a_sign_in_of_a_clock_that_was_ahead_outlives_no_withdrawal(event_type):
    """Nobody knows what came first, so the withdrawal counts."""
    ahead = timezone.now() + HOUR
    identity = person(signed_in_at=ahead, kyc_said_at=ahead)
    deliver(event_type)
    assert newest_outcome() == "applied"
    standing = standing_of(again(identity.user))
    assert standing.level_shortfall("level_2") is not None
    if event_type != "kyc.rejected":
        assert not is_open(identity)


@pytest.mark.parametrize("event_type", ["consent.revoked", "claim.revoked"])
def test_a_machine_whose_clock_is_behind_ignores_no_withdrawal(
    event_type, identity_clock
):
    """For it the event is from its receipt, long before a sign-in on another machine."""
    now = timezone.now()
    lately = now - 10 * MINUTE
    identity = person(signed_in_at=lately, credential_issued_at=lately)
    identity_clock.advance(hours=-1)
    deliver(event_type, at=now)
    identity_clock.advance(hours=1)
    assert newest_outcome() == "applied"
    assert not is_open(identity)


def test_a_level_from_the_future_opens_no_gate_and_is_read_again(service):
    """Else it would count for as long as the clock was ahead."""
    ahead = timezone.now() + 300 * 24 * HOUR
    identity = person(kyc_said_at=ahead, credential_issued_at=None)
    standing = standing_of(again(identity.user))
    assert standing.level_shortfall("level_2") == Shortfall(Reason.RUN_OUT)
    assert refetched(identity) is Refetched.STORED
    standing = standing_of(again(identity.user))
    assert standing.level_shortfall("level_2") is None
