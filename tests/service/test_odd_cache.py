"""What stands in the cache was perhaps not written here: a number that cannot be is no number."""

from __future__ import annotations

import time

import pytest
from django.core.cache import cache
from django.test import override_settings

from django_identity import conf
from django_identity.exceptions import ServiceUnavailable
from django_identity.service import budget
from django_identity.service.budget import Priority
from tests.hostile import hostile_service
from tests.service.broken_cache import SilentCache
from tests.service.calls import configured, read

CACHES = {"default": {"BACKEND": "tests.clock_cache.ClockCache", "LOCATION": "odd cache"}}
IMPOSSIBLE = [float("inf"), float("-inf"), float("nan"), "inf", "NaN", "1e999", 1e300, -1e300,
              10**400, "text", [1], b"\xff"]  # fmt: skip


@pytest.mark.parametrize("number", IMPOSSIBLE, ids=lambda number: repr(number)[:9])
def test_an_impossible_number_holds_nobody_up(number: object) -> None:
    """A pause, a count or an outage of no possible length is none: calls are made as ever."""
    with override_settings(CACHES=CACHES), hostile_service() as service, configured(service):
        cache.clear()
        application = conf.application()
        budget.await_turn(application, Priority.UPKEEP, endpoint="claims", patience=0)
        budget.pause(application, endpoint="claims", seconds=60)
        for _ in range(budget.FAILURES_IN_A_ROW):
            budget.note(application, "kyc", ServiceUnavailable())
        names = cache.names()
        assert len(names) >= 4
        for name in names:
            cache.set(name, number, timeout=60)
        read(Priority.INTERACTIVE)
        read(Priority.UPKEEP)
        assert budget.paused_for(application, "claims") == 0.0
        assert service.calls("kyc") == 2


def test_a_silent_cache_is_waited_for_once() -> None:
    """After its first time-out a process does not ask it for some seconds: calls are made."""
    silent = {"default": {"BACKEND": "tests.service.broken_cache.SilentCache"}}
    SilentCache.asked = 0
    with override_settings(CACHES=silent), hostile_service() as service, configured(service):
        began = time.monotonic()
        for _ in range(5):
            read(Priority.INTERACTIVE)
        assert service.calls("kyc") == 5
        assert time.monotonic() - began < 2.5
    assert SilentCache.asked == 1
