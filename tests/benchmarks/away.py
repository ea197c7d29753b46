"""A service that is down for ten minutes while 10,000 rows are due, and the minutes after.

Every minute does what ``upkeep`` and its messages do, with the clock moved: a message for each 200
rows that are due, up to REFETCHES_PER_MINUTE.

- ``calls_a_minute_down``: the calls of the busiest minute while the service is down
- ``calls_first_minute_after``, ``stored_first_minute_after``, ``calls_busiest_minute_after``
- ``failed_rows``: rows that met the outage and wait for their back-off
"""

from __future__ import annotations

import logging

from django.test import override_settings

from django_identity.lifecycle import key_sets, upkeep
from django_identity.models import LinkedIdentity
from django_identity.testing.clock import Clock, moved_clock
from tests.benchmarks.harness import Figures, fresh_database
from tests.integration.backlog import make_backlog
from tests.integration.stand_in import StandIn, setting

PEOPLE, DOWN, AFTER = 10_000, 10, 2
MESSAGES = 1000 // upkeep.ROWS_IN_A_MESSAGE


class Faulty(StandIn):
    """It closes each connection without an answer while it is down."""

    is_down = True

    def _answer(self, target: str, body: bytes) -> dict[str, object]:
        good = super()._answer(target, body)
        if self.is_down:
            raise ConnectionError
        return good


def run() -> Figures:
    logging.disable()
    service = Faulty()
    setup = {"default": setting(service.origin)}
    with fresh_database(), override_settings(DJANGO_IDENTITY=setup), moved_clock() as clock:
        make_backlog(PEOPLE)
        service.is_down = False
        assert upkeep.refetch_for_a_minute("default", 1)  # the key set is warm
        service.is_down = True
        down = [a_minute(clock, service)[0] for _ in range(DOWN)]
        failed = LinkedIdentity.objects.filter(refetch_failures__gt=0).count()
        key_sets.forget()
        service.is_down = False
        after = [a_minute(clock, service) for _ in range(AFTER)]
    service.close()
    return {
        "calls_a_minute_down": max(down),
        "calls_first_minute_after": after[0][0],
        "stored_first_minute_after": after[0][1],
        "calls_busiest_minute_after": max(calls for calls, _ in after),
        "failed_rows": failed,
    }


def a_minute(clock: Clock, service: StandIn) -> tuple[int, int]:
    """The calls of a minute, and the identities that were stored in it."""
    clock.advance(minutes=1)
    before, stored = len(service.seen), 0
    for _ in range(MESSAGES):
        tally = upkeep.refetch_for_a_minute("default", upkeep.ROWS_IN_A_MESSAGE)
        stored += tally[upkeep.Refetched.STORED]
    return len(service.seen) - before, stored
