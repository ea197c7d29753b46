"""Days of 10,000 linked identities, minute by minute, with the clock moved.

Every minute does what a sweep and its tasks do. Two days:

- The first one: everybody is linked as it begins, the worst there is for the minute in which they
  are due. Each is re-fetched once, at about 75 % of the credential's 24 hours:
  ``calls_per_identity``; and ``busiest_minute_vs_mean``, in calls, of the minutes with any.
- One of many: the identities were linked evenly over the days before. Each is re-fetched 24 / 18 =
  1.33 times: ``steady_calls_per_identity``. ``steady_busiest_minute_vs_mean``, which chance alone
  brings to over 2 with nine re-fetches a minute, and ``steady_busiest_hour_vs_mean``, which it does
  not.

Access tokens live an hour, so each re-fetch costs one refresh and one read, and every second one
reads the KYC level besides: ``calls_per_refetch``.
``left_over``: identities that were due, or lost, at the end of a day.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import mean

from django.contrib.auth.models import User
from django.test import override_settings
from django.test.utils import setup_test_environment
from django.utils import timezone

from django_identity.lifecycle.upkeep import jobs
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.lifecycle.upkeep.replacement import CREDENTIAL_LIFETIME, due_at
from django_identity.models import LinkedIdentity, TokenGrant
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result
from tests.records import make_grant, make_identity
from tests.servers.stand_in import StandIn, setting

IDENTITIES = 10_000
MINUTES = 24 * 60
SCOPES = ["profile:read", "kyc:read", "claims:read"]
# How much of its first period lies behind an identity as the day begins.
Phase = Callable[[int], float]


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


@dataclass(frozen=True)
class Day:
    """The calls of each of its minutes, the re-fetches that were stored, and what it left over."""

    calls: list[int]
    refetches: int
    left_over: int

    @property
    def calls_per_identity(self) -> float:
        return sum(self.calls) / IDENTITIES

    def busiest_vs_mean(self, *, minutes: int) -> float:
        """Calls in the busiest such piece of the day, beside the mean of those with any."""
        pieces = [sum(self.calls[at : at + minutes]) for at in range(0, MINUTES, minutes)]
        return max(pieces) / mean(filter(None, pieces))


def run() -> Result:
    setup_test_environment()
    first = a_day(lambda number: 0.0)
    steady = a_day(lambda number: 1 - (number + 0.5) / IDENTITIES)
    figures = {
        "calls_per_identity": first.calls_per_identity,
        "busiest_minute_vs_mean": first.busiest_vs_mean(minutes=1),
        "steady_calls_per_identity": steady.calls_per_identity,
        "steady_busiest_minute_vs_mean": steady.busiest_vs_mean(minutes=1),
        "steady_busiest_hour_vs_mean": steady.busiest_vs_mean(minutes=60),
        "calls_per_refetch": sum(first.calls + steady.calls) / (first.refetches + steady.refetches),
        "left_over": float(first.left_over + steady.left_over),
    }
    return Result("upkeep", {}, figures)


def a_day(phase: Phase) -> Day:
    service = StandIn()
    with (
        fresh_database(),
        override_settings(DJANGO_IDENTITY={"default": setting(service.origin, TIMEOUT=10)}),
        moved_clock() as clock,
    ):
        make_identities(phase)
        calls, ended = minute_by_minute(clock, service)
        dead = TokenGrant.objects.filter(needs_reauthorization=True)
        left_over = jobs.count_due() + dead.count()
    service.close()
    assert set(ended) == {Refetched.STORED}
    return Day(calls, ended.total(), left_over)


def minute_by_minute(clock: Clock, service: StandIn) -> tuple[list[int], Counter[Refetched]]:
    """The calls of each minute, and how the re-fetches of all of them ended."""
    calls, ended = [], Counter[Refetched]()
    for _ in range(MINUTES):
        clock.seconds += 60
        before = len(service.seen)
        ended += Counter(jobs.refetch_due())
        calls.append(len(service.seen) - before)
    return calls, ended


def make_identities(phase: Phase) -> None:
    """Each with a credential that was fetched a part of its own period ago."""
    now = timezone.now()
    for number in range(IDENTITIES):
        subject = f"subject-{number}"
        identity = make_identity(
            User.objects.create(username=f"user-{number}"), subject=subject, scopes=SCOPES
        )
        # The level was read at the last re-fetch, or at the one before.
        refetches_ago = phase(number) + (number % 2 if phase(number) else 0)
        LinkedIdentity.objects.filter(pk=identity.pk).update(
            refetch_due_at=now + period(identity) * (1 - phase(number)),
            kyc_checked_at=now - period(identity) * refetches_ago,
        )
        make_grant(
            identity,
            access_token=f"at-0-{subject}",
            refresh_token=f"rt-0-{subject}",
            access_expires_at=now,
        )


def period(identity: LinkedIdentity) -> timedelta:
    """From one re-fetch of the identity to the next."""
    now = timezone.now()
    return due_at(identity, now=now, ends_at=now + CREDENTIAL_LIFETIME) - now
