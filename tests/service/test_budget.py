"""One budget of calls for all workers, and one pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from django.test import override_settings

from django_identity import conf
from django_identity.exceptions import (
    BudgetSpent,
    RateLimited,
    ServiceUnavailable,
)
from django_identity.service import budget
from django_identity.service.budget import Priority
from tests import crowd
from tests.hostile import HostileService, hostile_service, http
from tests.service.calls import client, configured, read

UNUSABLE = {"default": {"BACKEND": "tests.service.broken_cache.BrokenCache"}}


@pytest.fixture
def service() -> Iterator[HostileService]:
    with hostile_service() as running, configured(running):
        yield running


same_minute = pytest.mark.usefixtures("_early_in_the_minute")


def shared_cache(folder: Path) -> override_settings:
    """A cache that other processes see."""
    backend = "django.core.cache.backends.filebased.FileBasedCache"
    return override_settings(CACHES={"default": {"BACKEND": backend, "LOCATION": str(folder)}})


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_429_pauses_everybody(service: HostileService, as_date: bool) -> None:
    """After one 429 no worker calls before ``Retry-After`` is over; a short pause is waited out."""
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=61), usegmt=True)
    after = f"Retry-After: {until if as_date else 60}\r\n"
    service.answers["kyc"] = http(b"", status="429 Slow", headers=after)
    with pytest.raises(RateLimited):
        read()
    for priority in Priority:
        with pytest.raises(RateLimited) as paused:
            read(priority)
        assert paused.value.retry_after == pytest.approx(60, abs=2)
    with pytest.raises(RateLimited):
        client().claims("subject-1", access_token="at")
    assert len(service.requests) == 1
    client().refresh("rt")


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_429_to_one_process_pauses_the_others(
    service: HostileService, tmp_path: Path, as_date: bool
) -> None:
    """What one process was told, no other one has to be told again."""
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)
    after = f"Retry-After: {until if as_date else 120}\r\n"
    service.answers["kyc"] = http(b"", status="429 Slow", headers=after)
    with configured(service, TIMEOUT=5), shared_cache(tmp_path):
        [told] = crowd.outcomes(crowd.start("tests.service.crowd_calls:read"))
        [heard] = crowd.outcomes(crowd.start("tests.service.crowd_calls:read"))
        with pytest.raises(RateLimited):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    assert 90 < heard <= told <= 120
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 1), ("007", 7), ("Retry", 1), ("-5", 1), ("1.5", 1), ("9" * 5000, 3600),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 3600), ("Sat, 01 Jan 2000 00:00:00 GMT", 1),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", 1),
        ("Sun, 06 Nov 2044 08:49:37 +99999999999999999999", 1),
    ],
    ids=["none", "zeros", "word", "negative", "fraction", "endless", "far", "past", "year", "zone"],
)  # fmt: skip
def test_whatever_retry_after_says(service: HostileService, header: str, seconds: int) -> None:
    """The pause is a second at least and an hour at most; what cannot be read is a second."""
    after = f"Retry-After: {header}\r\n"
    service.answers["kyc"] = http(b"", status="429 Slow", headers=after)
    with pytest.raises(RateLimited):
        read()
    assert budget.paused_for(conf.application(), "claims") == pytest.approx(seconds, abs=0.5)


def test_a_pause_that_ends_in_time_is_waited_out(service: HostileService) -> None:
    """A call sleeps through a pause that its own deadline outlasts."""
    with configured(service, TIMEOUT=5):
        budget.pause(conf.application(), endpoint="claims", seconds=1)
        began = time.monotonic()
        read()
        assert 0.9 < time.monotonic() - began < 2


def test_the_budget_holds_for_many_workers(service: HostileService) -> None:
    """However many ask at once: no window has more calls than the budget allows."""
    with configured(service, RATE_LIMIT="20/s"):
        application = conf.application()
        moments: list[float] = []

        def take() -> None:
            budget.await_turn(application, Priority.INTERACTIVE, endpoint="claims", patience=5)
            moments.append(time.time())

        threads = [threading.Thread(target=take) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(moments) == 50
    assert max(moments) - min(moments) > 1.0


@same_minute
def test_processes_share_one_budget(service: HostileService, tmp_path: Path) -> None:
    """What one process has spent, another one cannot spend again."""
    with configured(service, RATE_LIMIT="10/min"), shared_cache(tmp_path):
        target = "tests.service.crowd_calls:turns"
        assert crowd.outcomes(crowd.start(target)) == [10]
        assert crowd.outcomes(crowd.start(target)) == [0]


@same_minute
def test_no_turn_in_time_is_an_error(service: HostileService) -> None:
    """Nobody waits for a turn longer than the call's own deadline allows; nothing is sent."""
    with configured(service, RATE_LIMIT="1/min"):
        read()
        began = time.monotonic()
        with pytest.raises(BudgetSpent):
            read()
        assert time.monotonic() - began < 0.5
    assert service.calls("kyc") == 1


@same_minute
def test_people_come_before_upkeep(service: HostileService) -> None:
    """Upkeep leaves a fifth of the budget to those who wait."""
    with configured(service, RATE_LIMIT="10/min"):
        for _ in range(8):
            read(Priority.UPKEEP)
        with pytest.raises(BudgetSpent):
            read(Priority.UPKEEP)
        read()
        read()
        with pytest.raises(BudgetSpent):
            read()


def test_no_limit_means_no_count(service: HostileService) -> None:
    """``RATE_LIMIT = None`` switches the budget off."""
    with configured(service, RATE_LIMIT=None):
        for _ in range(60):
            read()


@same_minute
def test_applications_do_not_share_a_budget(service: HostileService) -> None:
    """One that has spent its calls does not stop the other."""
    with configured(service, RATE_LIMIT="1/min"):
        application = conf.application()
        read()
    other = replace(application, client_id="another")
    budget.await_turn(other, Priority.UPKEEP, endpoint="claims", patience=0)
    with pytest.raises(BudgetSpent):
        budget.await_turn(application, Priority.INTERACTIVE, endpoint="claims", patience=0)


def test_a_cache_that_fails_stops_no_call(service: HostileService) -> None:
    """Without the shared counts calls are made all the same."""
    with override_settings(CACHES=UNUSABLE):
        read()
        read(Priority.UPKEEP)
        budget.note(conf.application(), "claims", ServiceUnavailable())
        assert not budget.is_away(conf.application())
    assert service.calls("kyc") == 2
