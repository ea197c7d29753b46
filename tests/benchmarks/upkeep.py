"""A day of 10,000 linked identities, minute by minute, with the clock moved.

Every minute does what a sweep and its tasks do. A re-fetch is due at 75 % of a credential's
24 hours, so in the long run each identity is re-fetched 24 / 18 = 1.33 times a day; access tokens
live an hour, so each re-fetch costs one refresh and one read: 2.67 calls a day. The day begins
in that steady state: each identity was re-fetched last at a random moment of its own period.

Figures: ``calls_per_identity`` of the day and ``calls_per_refetch``; ``busiest_minute_vs_mean``, in
calls, which chance alone brings to about 2 with nine re-fetches a minute, and
``busiest_hour_vs_mean``, which it does not; identities that were ``left_over`` at the end of it.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.contrib.auth.models import User
from django.test import override_settings
from django.test.utils import setup_test_environment
from django.utils import timezone

from django_identity.lifecycle import upkeep
from django_identity.lifecycle.claims import Refetched
from django_identity.lifecycle.replacement import CREDENTIAL_LIFETIME, DUE_AT_SHARE, DUE_SPREAD
from django_identity.models import TokenGrant
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result
from tests.records import make_grant, make_identity
from tests.servers.stand_in import StandIn, setting

IDENTITIES = 10_000
MINUTES = 24 * 60
SEED = 20_261_120


@dataclass
class Clock:
    """The time that everything here goes by; it moves when it is told to."""

    seconds: float

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def time(self) -> float:
        return self.seconds


@contextmanager
def moved_clock() -> Iterator[Clock]:
    """Put a clock in the place of Django's and Python's. Waits and time-outs go by the real one."""
    clock = Clock(time.time())
    real_now, real_time = timezone.now, time.time
    timezone.now, time.time = clock.now, clock.time
    try:
        yield clock
    finally:
        timezone.now, time.time = real_now, real_time


def run() -> Result:
    setup_test_environment()
    service = StandIn()
    with (
        fresh_database(),
        override_settings(DJANGO_IDENTITY={"default": setting(service.origin, TIMEOUT=10)}),
        moved_clock() as clock,
    ):
        make_identities(random.Random(SEED))
        calls, ended = a_day(clock, service)
        dead = TokenGrant.objects.filter(needs_reauthorization=True)
        left_over = upkeep.count_due() + dead.count()
    service.close()
    assert set(ended) == {Refetched.STORED}
    by_hour = Counter[int]()
    for minute, number in enumerate(calls):
        by_hour[minute // 60] += number
    figures = {
        "calls_per_identity": sum(calls) / IDENTITIES,
        "calls_per_refetch": sum(calls) / ended.total(),
        "busiest_minute_vs_mean": max(calls) / (sum(calls) / len(calls)),
        "busiest_hour_vs_mean": max(by_hour.values()) / (sum(calls) / len(by_hour)),
        "left_over": float(left_over),
    }
    return Result("upkeep", {}, figures)


def a_day(clock: Clock, service: StandIn) -> tuple[list[int], Counter[Refetched]]:
    """The calls of each minute, and how the re-fetches of all of them ended."""
    calls, ended = [], Counter[Refetched]()
    for _ in range(MINUTES):
        clock.seconds += 60
        before = len(service.seen)
        ended += upkeep.refetch_due(most=None, stop=lambda: False, tell=lambda _outcome: None)
        calls.append(len(service.seen) - before)
    return calls, ended


def make_identities(chance: random.Random) -> None:
    """In the steady state: the next re-fetch is due at any moment of each one's period."""
    now = timezone.now()
    for number in range(IDENTITIES):
        subject = f"subject-{number}"
        period = CREDENTIAL_LIFETIME * (DUE_AT_SHARE + chance.uniform(-DUE_SPREAD, DUE_SPREAD))
        identity = make_identity(
            User.objects.create(username=f"user-{number}"),
            subject=subject,
            scopes=["claims:read"],
            refetch_due_at=now + period * chance.random(),
        )
        make_grant(
            identity,
            access_token=f"at-0-{subject}",
            refresh_token=f"rt-0-{subject}",
            access_expires_at=now,
        )
