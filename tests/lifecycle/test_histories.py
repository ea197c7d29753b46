"""Random histories of a level: late events in any order, repeats, crashes, re-fetches, two clocks.

At each step no gate is open on a level whose end was delivered. In the end the level is the
service's, after the re-fetch that is due.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.utils import timezone

from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import events
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.testing.clock import Clock
from tests.deliveries import SECRET, event_body, post
from tests.effort import spread
from tests.factories import again, make_grant, make_identity, make_user
from tests.fake_service import FakeService
from tests.lifecycle.refetches import all_refetched

pytestmark = pytest.mark.django_db(transaction=True)

VERIFIED = {"status": "verified", "kyc_level": "level_2"}
REJECTED = {"status": "rejected", "kyc_level": "level_0"}
#: What happens at the service: the event, what it says, and the level then.
HAPPENS = [
    ("kyc.verified", VERIFIED, VERIFIED),
    ("kyc.rejected", REJECTED, REJECTED),
    ("claim.revoked", {"claim_type": "kyc_verified"}, REJECTED),
]
#: Seconds by which the service's clock is ahead, and seconds between two steps.
SKEWS = (-299, -120, -5, 0, 5, 120, 299)
PAUSES = (0.5, 2, 30, 200, 400, 4000)


class History:
    """One person, linked when the history begins. ``told``: the steps so far."""

    def __init__(self, seed: int, service: FakeService, clock: Clock) -> None:
        self.dice = random.Random(seed)
        self.service = service
        self.clock = clock
        self.skew = timedelta(seconds=self.dice.choice(SKEWS))
        self.waiting: list[bytes] = []
        self.delivered: list[bytes] = []
        self.newest = b""
        self.told = [f"the service's clock is {self.skew} ahead"]
        now = timezone.now()
        service.kyc = dict(self.dice.choice([VERIFIED, REJECTED]))
        self.identity = make_identity(
            make_user(),
            signed_in_at=now,
            kyc_said_at=now,
            kyc_status=service.kyc["status"],
            kyc_level=service.kyc["kyc_level"],
            scopes=["kyc:read"],
            refetch_due_at=now + timedelta(hours=18),
        )
        for_long = now + timedelta(days=300)
        make_grant(
            self.identity, access_expires_at=for_long, refresh_expires_at=for_long
        )

    def something_happens(self) -> None:
        event_type, about, level = self.dice.choice(HAPPENS)
        self.service.kyc = dict(level)
        self.newest = event_body(event_type, at=timezone.now() + self.skew, **about)
        self.waiting.append(self.newest)
        self.told.append(f"at the service: {event_type}")

    def something_arrives(self) -> None:
        """Any event that waits, or once more one that came. Now and then the process dies."""
        bodies = self.waiting or self.delivered
        if not bodies:
            return
        body = self.dice.choice(bodies)
        if self.dice.random() < 0.15:
            with suppress(SystemExit), mock.patch.object(events, "apply", self._dies):
                post(body)
            self.told.append(f"its process dies: {body!r}")
            return
        assert post(body).status_code == 200
        self.told.append(f"delivered: {body!r}")
        self.delivered.append(body)
        if body in self.waiting:
            self.waiting.remove(body)

    @staticmethod
    def _dies(*_arguments: object) -> None:
        raise SystemExit

    def is_refetched(self) -> None:
        self.told.append(f"re-fetched: {[*map(str, all_refetched())]}")

    def upkeep_runs(self) -> None:
        self.clock.advance(minutes=1.1)
        upkeep.tend()
        self.told.append("upkeep")

    def check(self) -> None:
        """No gate is open on what was delivered to be no more."""
        if self.newest in self.delivered and self.service.kyc["status"] == "rejected":
            standing = standing_of(again(self.identity.user))
            assert standing.level_shortfall("level_2"), self.told

    def is_true(self) -> bool:
        held = LinkedIdentity.objects.get()
        said = self.service.kyc
        return (held.kyc_status, held.kyc_level) == (said["status"], said["kyc_level"])


@pytest.mark.parametrize("seed", spread(range(48), every=4))
def test_any_history(
    seed: int, service: FakeService, settings: Any, identity_clock: Clock
) -> None:
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    history = History(seed, service, identity_clock)
    steps: list[Callable[[], None]] = [
        *[history.something_happens] * 4,
        *[history.something_arrives] * 4,
        history.is_refetched,
        history.upkeep_runs,
    ]
    for step in history.dice.choices(steps, k=9):
        identity_clock.advance(seconds=history.dice.choice(PAUSES))
        step()
        history.check()
    while history.waiting:
        identity_clock.advance(seconds=history.dice.choice(PAUSES))
        history.something_arrives()
        history.check()
    history.upkeep_runs()
    assert history.is_true() or LinkedIdentity.objects.get().is_due, history.told
    history.is_refetched()
    assert history.is_true(), history.told
    assert not WebhookEvent.objects.filter(outcome=""), history.told
