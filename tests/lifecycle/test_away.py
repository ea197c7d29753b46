"""A service that is away costs no due row its turn, and nobody rushes at it when it is back."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle import upkeep
from django_identity.lifecycle.upkeep import Refetched
from django_identity.models import LinkedIdentity
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, html
from tests.lifecycle.key_origin import time_passes

pytestmark = pytest.mark.django_db(transaction=True)

DOWN = html("500 Oops")


@dataclass
class Clock:
    """Real time and an offset."""

    offset: float = 0.0

    def passes(self, *, minutes: float) -> None:
        self.offset += minutes * 60
        time_passes(minutes * 60)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moves what Django, the cache and the package call now; waits are real."""
    made, real = Clock(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + made.offset)
    monkeypatch.setattr(timezone, "now", lambda: datetime.fromtimestamp(time.time(), UTC))
    return made


@pytest.fixture
def service(service: FakeService) -> Iterator[FakeService]:
    """It answers about whoever is asked for."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        service.answers["claims"] = service.good("claims")

    service.meanwhile["claims"] = turn
    setting = service.settings(TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY={"default": setting}):
        yield service


def make_due(number: int, *, minutes: int = 60) -> LinkedIdentity:
    due_at = timezone.now() - timedelta(minutes=minutes) + timedelta(seconds=number)
    identity = make_identity(
        make_user(f"user-{number}"), subject=f"subject-{number}", refetch_due_at=due_at
    )
    make_grant(
        identity, refresh_token=f"rt-{number}-0", access_expires_at=due_at + timedelta(days=9)
    )
    return identity


def a_minute(clock: Clock) -> Counter[Refetched]:
    """What one message does, each minute."""
    clock.passes(minutes=1)
    return upkeep.refetch_for_a_minute("default")


@pytest.mark.parametrize("people", [1, 30])
@pytest.mark.parametrize("down", [("claims",), ("claims", "token", "jwks")], ids=["claims", "all"])
def test_ten_minutes_cost_few_calls_and_nobody_a_turn(
    service: FakeService, clock: Clock, people: int, down: tuple[str, ...]
) -> None:
    """It is called twice a minute at most; of thirty people ten are served a minute later."""
    for number in range(people):
        make_due(number)
    back = service.meanwhile.pop("claims")
    service.answers.update(dict.fromkeys(down, DOWN))
    for _ in range(10):
        a_minute(clock)
    assert service.calls("claims") <= 2 * 10
    assert service.calls("jwks") <= 2 * 10
    service.answers.clear()
    service.meanwhile["claims"] = back
    assert a_minute(clock)[Refetched.STORED] >= people // 3
    ended = sum((a_minute(clock) for _ in range(30)), Counter[Refetched]())
    assert upkeep.count_due() == 0
    assert LinkedIdentity.objects.filter(last_error="").count() == people
    assert ended[Refetched.OUTAGE] == 0


@pytest.mark.parametrize("odd", ["fails", "kills its worker"])
def test_odd_persons_stop_nobody_else(
    service: FakeService, clock: Clock, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of sixty for whom the service fails, or one whose re-fetch kills the worker: all
    others are served within the hour (but for one run in two hundred).
    """
    monkeypatch.setattr(upkeep, "random", random.Random(1))
    for number in range(60):
        make_due(number)
    odd_ones = range(3) if odd == "fails" else range(1)

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        is_odd = int(service.subject.removeprefix("subject-")) in odd_ones
        service.answers["claims"] = DOWN if is_odd else service.good("claims")

    service.meanwhile["claims"] = turn
    for _ in range(60):
        clock.passes(minutes=1)
        for outcome in upkeep.refetch_due(conf.application(), most=200):
            if outcome is Refetched.OUTAGE and odd == "kills its worker":
                # As a killed worker leaves it: nothing of the failure is written.
                hidden = {"refetch_due_at": timezone.now() + upkeep.HIDDEN_FOR, "last_error": ""}
                failed = LinkedIdentity.objects.filter(refetch_failures__gt=0)
                failed.update(refetch_failures=0, **hidden)
                break
    served = LinkedIdentity.objects.filter(last_error="", credential_issued_at__isnull=False)
    assert served.count() == 60 - len(odd_ones)
