"""A service that is away costs no due row its turn, and nobody rushes at it when it is back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_identity.lifecycle.upkeep import jobs
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import LinkedIdentity
from tests.hostile import HostileService, html
from tests.lifecycle.key_sets.steps import time_passes
from tests.records import make_grant, make_identity, make_user

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
def service(service: HostileService) -> Iterator[HostileService]:
    """It answers about whoever is asked for."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        service.answers["claims"] = service.good("claims")

    service.meanwhile["claims"] = turn
    setting = service.settings(RATE_LIMIT=None, TIMEOUT=5)
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
    """What a sweep and its tasks do, each minute."""
    clock.passes(minutes=1)
    return Counter(jobs.refetch_due())


@pytest.mark.parametrize("people", [1, 3, 12])
@pytest.mark.parametrize("down", [("claims",), ("claims", "token", "jwks")], ids=["claims", "all"])
def test_an_hour_costs_nobody_a_turn(
    service: HostileService, clock: Clock, people: int, down: tuple[str, ...]
) -> None:
    """It is asked about once a minute at most; within three minutes of its return all is done."""
    for number in range(people):
        make_due(number)
    back = service.meanwhile.pop("claims")
    service.answers.update(dict.fromkeys(down, DOWN))
    for _ in range(60):
        a_minute(clock)
    assert service.calls("claims") <= 60 + 5
    assert service.calls("jwks") <= 2 * 60 + 5
    service.answers.clear()
    service.meanwhile["claims"] = back
    ended = sum((a_minute(clock) for _ in range(3)), Counter[Refetched]())
    assert ended[Refetched.STORED] == people


def test_persons_whose_answers_fail_stop_nobody_else(service: HostileService, clock: Clock) -> None:
    """Six in front for whom alone the service fails look like a service that is away."""
    for number in range(9):
        make_due(number)

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        fails = int(service.subject.removeprefix("subject-")) < 6
        service.answers["claims"] = DOWN if fails else service.good("claims")

    service.meanwhile["claims"] = turn
    for _ in range(10):
        a_minute(clock)
    assert (
        LinkedIdentity.objects.filter(refetch_due_at__gt=timezone.now(), last_error="").count() == 3
    )


def test_nobody_rushes_at_it_when_it_is_back(service: HostileService, clock: Clock) -> None:
    """Eight workers with all that fell due meanwhile keep to the budget."""
    for number in range(40):
        make_due(number)
    back = service.meanwhile.pop("claims")
    moments: list[float] = []

    def turn() -> None:
        moments.append(time.monotonic())
        back()

    setting = service.settings(RATE_LIMIT="10/s", TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY={"default": setting}):
        service.answers["claims"] = DOWN
        a_minute(clock)
        clock.passes(minutes=60)
        service.answers.clear()
        service.meanwhile["claims"] = turn
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    assert moments
    busiest = max(sum(first <= at < first + 1 for at in moments) for first in moments)
    assert busiest <= 2 * 8


def work(_number: int) -> None:
    try:
        for _ in range(3):
            Counter(jobs.refetch_due())
    finally:
        connections.close_all()
