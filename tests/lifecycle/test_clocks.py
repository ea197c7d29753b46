"""Two clocks that differ by seconds or minutes: what is taken away stays so, what came is read."""

import itertools
import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.reasons import Reason, Shortfall
from django_identity.requirements import RequiredClaim
from django_identity.testing.clock import Clock
from tests.deliveries import SECRET, deliver
from tests.factories import (
    again,
    make_claim,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import FakeService
from tests.lifecycle.refetches import refetched

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def person(**fields: Any) -> LinkedIdentity:
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


def is_due() -> bool:
    return LinkedIdentity.objects.get().is_due


def is_open(identity: LinkedIdentity) -> bool:
    standing = standing_of(again(identity.user))
    return standing.shortfall(RequiredClaim("age_over_18")) is None


def newest_outcome() -> str:
    return WebhookEvent.objects.latest("pk").outcome


# The service's clock is ahead


@pytest.mark.parametrize("ahead", [0.0, 0.5, 1.0, 4 * 60.0])
def test_a_revoked_claim_stays_closed_if_the_former_credential_comes_again(
    service: FakeService, settings: Any, ahead: float
) -> None:
    """The next one proves the claim again."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    identity = person(signed_in_at=timezone.now() - HOUR, credential_issued_at=None)
    service.payload["iat"] = int(time.time() + ahead)
    assert refetched(identity) is Refetched.STORED
    assert is_open(identity)
    deliver(
        "claim.revoked",
        at=timezone.now() + timedelta(seconds=ahead),
        claim_type="age_over_18",
    )
    assert not is_open(identity)
    assert refetched(identity) is Refetched.STORED
    assert not is_open(identity)
    service.payload["iat"] = int(time.time() + ahead) + 2
    refetched(identity)
    assert is_open(identity)


def test_a_revocation_of_all_claims_stays_too(
    service: FakeService, settings: Any
) -> None:
    """The level keeps the time of the service's newest answer."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
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
def test_what_brings_something_is_read_from_the_service(
    event_type: str, behind: timedelta
) -> None:
    """However old it seems. Its own statement never counts."""
    person(kyc_status="unverified", kyc_level="")
    deliver(
        event_type, at=timezone.now() - behind, kyc_level="level_2", status="verified"
    )
    assert is_due()
    assert newest_outcome() == "applied"
    assert LinkedIdentity.objects.get().kyc_status == "unverified"


@pytest.mark.parametrize("event_type", ["kyc.verified", "claim.issued"])
def test_a_link_by_code_cannot_be_read_again(event_type: str) -> None:
    """The level stays what the code said."""
    make_identity_by_code(make_user(), kyc_level="level_1", kyc_status="verified")
    deliver(event_type, kyc_level="level_3")
    assert newest_outcome() == "applied"
    assert not is_due()
    assert LinkedIdentity.objects.get().kyc_level == "level_1"


@pytest.mark.parametrize("behind", [0, 60])
def test_a_verification_on_another_machine_of_the_site_is_read(
    service: FakeService, settings: Any, behind: float
) -> None:
    """Its clock is a little behind that of the machine that has just asked the service."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    person(kyc_status="unverified", kyc_level="", credential_issued_at=None)
    deliver("kyc.verified")
    lately = timezone.now() - timedelta(seconds=behind)
    WebhookEvent.objects.update(received_at=lately)
    assert refetched(LinkedIdentity.objects.get()) is Refetched.STORED
    assert service.calls("kyc") == 1


@pytest.mark.parametrize("seconds", [0, 5])
def test_an_uncovered_level_is_not_kept_however_old_it_is(seconds: int) -> None:
    person(scopes=["claims:read"])
    deliver("kyc.verified", at=timezone.now() - seconds * SECOND, kyc_level="level_3")
    row = WebhookEvent.objects.get()
    assert (row.outcome, row.payload, row.why_ignored) == (
        "ignored",
        None,
        "not_covered",
    )
    assert not is_due()


# A clock of the site was ahead


@pytest.mark.parametrize(
    "event_type", ["consent.revoked", "claim.revoked", "kyc.rejected"]
)
def test_a_sign_in_of_a_clock_that_was_ahead_outlives_no_withdrawal(
    event_type: str,
) -> None:
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
    event_type: str, identity_clock: Clock
) -> None:
    """For it the event is from its receipt, long before a sign-in on another machine."""
    now = timezone.now()
    lately = now - 10 * MINUTE
    identity = person(signed_in_at=lately, credential_issued_at=lately)
    identity_clock.advance(hours=-1)
    deliver(event_type, at=now)
    identity_clock.advance(hours=1)
    assert newest_outcome() == "applied"
    assert not is_open(identity)


@pytest.mark.parametrize("event_type", ["kyc.verified", "claim.issued"])
def test_what_comes_after_such_a_sign_in_is_read_from_the_service(
    event_type: str,
) -> None:
    person(signed_in_at=timezone.now() + HOUR)
    deliver(event_type, kyc_level="level_2")
    assert is_due()


def test_a_level_from_the_future_opens_no_gate_and_is_read_again(
    service: FakeService, settings: Any
) -> None:
    """Else it would count for as long as the clock was ahead."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    ahead = timezone.now() + 300 * 24 * HOUR
    identity = person(kyc_said_at=ahead, credential_issued_at=None)
    standing = standing_of(again(identity.user))
    assert standing.level_shortfall("level_2") == Shortfall(Reason.RUN_OUT)
    assert refetched(identity) is Refetched.STORED
    standing = standing_of(again(identity.user))
    assert standing.level_shortfall("level_2") is None


# Every order


BEFORE_SIGN_IN: list[list[tuple[str, timedelta]]] = [
    [("kyc.rejected", -4 * MINUTE), ("kyc.verified", -3 * MINUTE)],
    [("claim.revoked", -4 * MINUTE), ("kyc.verified", -3 * MINUTE)],
    [
        ("kyc.rejected", -4 * MINUTE),
        ("kyc.verified", -3 * MINUTE),
        ("kyc.verified", -2 * MINUTE),
    ],
    [
        ("kyc.rejected", -4 * MINUTE),
        ("kyc.verified", -6 * MINUTE),
        ("kyc.verified", 1 * MINUTE),
    ],
    [
        ("kyc.rejected", -4 * MINUTE),
        ("claim.revoked", -3 * MINUTE),
        ("kyc.verified", -MINUTE),
    ],
]


@pytest.mark.parametrize("statements", BEFORE_SIGN_IN, ids=str)
def test_statements_from_before_the_sign_in_end_alike_in_every_order(
    statements: list[tuple[str, timedelta]],
) -> None:
    """A sign-in supersedes a verification, so that does not answer an earlier rejection."""
    signed_in_at = timezone.now() - 5 * MINUTE
    ends = []
    for order in itertools.permutations(statements):
        identity = person(signed_in_at=signed_in_at, kyc_said_at=signed_in_at)
        for event_type, offset in order:
            deliver(event_type, at=signed_in_at + offset, kyc_level="level_2")
        found = LinkedIdentity.objects.get()
        ends.append((found.kyc_status, found.kyc_level, found.kyc_said_at))
        assert is_due()
        identity.user.delete()
        WebhookEvent.objects.all().delete()
    assert ends == ends[:1] * len(ends)
