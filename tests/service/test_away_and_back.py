"""How long upkeep keeps away from a service that does not answer, and how it comes back."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from django_identity import conf
from django_identity.exceptions import ClientRejected, ServiceAway, ServiceUnavailable
from django_identity.service import budget

MINUTE = 60.0


@dataclass
class Clock:
    """Real time and an offset."""

    offset: float = 0.0

    def passes(self, seconds: float) -> None:
        self.offset += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moves what the cache and the package call now."""
    made, real = Clock(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + made.offset)
    return made


def fail(times: int) -> None:
    for _ in range(times):
        budget.note(conf.application(), "claims", ServiceUnavailable())


def is_admitted() -> bool:
    try:
        budget.require_open(conf.application(), "claims")
    except ServiceAway:
        return False
    return True


@pytest.mark.parametrize(
    ("failures", "shortest", "longest"), [(5, 0.4, 1.0), (8, 3.9, 8.0), (40, 29.0, 60.0)]
)
def test_the_pause_doubles_up_to_a_minute(
    clock: Clock, failures: int, shortest: float, longest: float
) -> None:
    """The longer nobody answers, the less often it is asked; the hour's last try is no hour ago."""
    fail(failures)
    # The test itself takes a moment.
    clock.passes(shortest - 0.3 if failures > 5 else 0.0)
    assert not budget.may_try(conf.application())
    clock.passes(longest - shortest + 0.4)
    assert budget.may_try(conf.application())


def test_a_try_that_fails_is_followed_by_another(clock: Clock) -> None:
    """One worker at a time, and not the same pause again: the next try is not put off for it."""
    fail(5)
    clock.passes(1.1)
    assert [is_admitted(), is_admitted()] == [True, False]
    fail(1)
    assert not is_admitted()
    clock.passes(2.1)
    assert [is_admitted(), is_admitted()] == [True, False]


def test_a_worker_that_died_at_its_try_holds_nobody_up(clock: Clock) -> None:
    """Half a minute later another one tries."""
    fail(5)
    clock.passes(1.1)
    assert [is_admitted(), is_admitted()] == [True, False]
    clock.passes(31)
    assert is_admitted()


def test_an_outage_is_remembered_from_its_last_failure_on(clock: Clock) -> None:
    """One that lasts for hours does not begin anew each hour."""
    fail(5)
    clock.passes(50 * MINUTE)
    fail(1)
    clock.passes(50 * MINUTE)
    assert budget.is_away(conf.application())
    clock.passes(11 * MINUTE)
    assert not budget.is_away(conf.application())


def test_a_rejected_client_is_tried_once_a_minute(clock: Clock) -> None:
    """From the first refusal on."""
    for _ in range(3):
        budget.note(conf.application(), "claims", ClientRejected())
        clock.passes(59)
        assert not budget.may_try(conf.application())
        clock.passes(1.1)
        assert [is_admitted(), is_admitted()] == [True, False]
