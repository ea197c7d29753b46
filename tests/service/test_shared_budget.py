"""What all workers share: the budget of calls, the pause after a 429, who counts as being there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.test import override_settings

from django_identity import conf
from django_identity.exceptions import (
    AnswerTooLarge,
    BudgetSpent,
    ServiceAway,
    ServiceUnavailable,
)
from django_identity.service import budget
from django_identity.service.budget import Priority
from django_identity.service.dispatch import send
from django_identity.service.transport import Call
from tests.at_once import at_once
from tests.hostile import HostileService, hostile_service, html, http, reset
from tests.service.calls import client, configured, read


@contextmanager
def slow_cache() -> Iterator[None]:
    """An empty cache whose readers all see what was there a moment ago."""
    slow = {"default": {"BACKEND": "tests.slow_cache.SlowCache", "LOCATION": "shared budget"}}
    with override_settings(CACHES=slow):
        cache.clear()
        yield


@pytest.fixture
def service() -> Iterator[HostileService]:
    with hostile_service() as running, configured(running, TIMEOUT=2):
        yield running


same_minute = pytest.mark.usefixtures("_early_in_the_minute")


@same_minute
def test_those_who_ask_at_the_same_moment_share_what_is_left(service: HostileService) -> None:
    """All of them saw a budget that was not spent; no more than it allows get a turn."""

    def take() -> bool:
        try:
            budget.await_turn(
                conf.application(), Priority.INTERACTIVE, endpoint="claims", patience=0
            )
        except BudgetSpent:
            return False
        return True

    with configured(service, RATE_LIMIT="4/min"), slow_cache():
        assert sum(at_once([take] * 12)) == 4


@same_minute
def test_who_asked_in_vain_uses_up_nothing(service: HostileService) -> None:
    """Upkeep that gets no turn, however often it asks, takes none away from people."""
    with configured(service, RATE_LIMIT="5/min"), slow_cache():
        application = conf.application()

        def take(priority: Priority) -> bool:
            try:
                budget.await_turn(application, priority, endpoint="claims", patience=0)
            except BudgetSpent:
                return False
            return True

        assert sum(at_once([lambda: take(Priority.UPKEEP)] * 12)) == 4
        assert [take(Priority.INTERACTIVE) for _ in range(2)] == [True, False]


@same_minute
def test_every_try_takes_its_turn(service: HostileService) -> None:
    """A read that is tried three times costs three calls."""
    service.answers["kyc"] = html("503 Bad")
    with configured(service, RATE_LIMIT="4/min", TIMEOUT=2):
        with pytest.raises(ServiceUnavailable):
            read()
        service.answers.clear()
        read()
        with pytest.raises(BudgetSpent):
            read()
    assert service.calls("kyc") == 4


def test_only_reads_are_tried_again(service: HostileService) -> None:
    """A call that changes something is sent once, even if nobody said that it must be."""
    service.answers["kyc"] = html("503 Bad")
    application = conf.application()
    call = Call("kyc", "POST", f"{application.base_url}/users/subject-1/kyc", json={}, seconds=2)
    assert send(application, call).status == 503
    assert service.calls("kyc") == 1


def test_calls_are_spread_over_the_minute(service: HostileService) -> None:
    """A budget of a minute is no leave to make all its calls in the first second."""
    with configured(service, RATE_LIMIT="600/min"):
        application = conf.application()
        began = time.monotonic()
        for _ in range(25):
            budget.await_turn(application, Priority.INTERACTIVE, endpoint="claims", patience=10)
    assert time.monotonic() - began > 1.0


def test_a_shorter_pause_does_not_end_a_longer_one(service: HostileService) -> None:
    """Answers to calls that were on their way when the first 429 came."""
    application = conf.application()
    budget.pause(application, endpoint="claims", seconds=60)
    budget.pause(application, endpoint="claims", seconds=2)
    assert budget.paused_for(application, "claims") > 55


@pytest.mark.parametrize("name", ["alias", "base_url", "client_id"])
def test_a_pause_is_one_applications_own(service: HostileService, name: str) -> None:
    """Another client, another service or another alias has a budget of its own."""
    application = conf.application()
    budget.pause(application, endpoint="claims", seconds=60)
    assert budget.paused_for(replace(application, **{name: "another"}), "claims") == 0.0


def test_no_connection_counts_as_being_away(service: HostileService) -> None:
    """As much as a 5xx: after five calls without an answer upkeep makes none."""
    service.answers["claims"] = reset
    while not budget.is_away(conf.application()):
        assert service.calls("claims") < budget.FAILURES_IN_A_ROW
        with pytest.raises((ServiceUnavailable, ServiceAway)):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    assert service.calls("claims") == budget.FAILURES_IN_A_ROW


def test_an_answer_that_is_too_large_is_an_answer(service: HostileService) -> None:
    """Whoever talks too much is there."""
    application = conf.application()
    for _ in range(4):
        budget.note(application, "claims", ServiceUnavailable())
    service.answers["claims"] = http(b" " * (256 * 1024 + 1))
    with pytest.raises(AnswerTooLarge):
        client(Priority.UPKEEP).claims("subject-1", access_token="at")
    budget.note(application, "claims", ServiceUnavailable())
    assert not budget.is_away(application)


@pytest.mark.parametrize("endpoint", ["token", "claims"])
def test_upkeep_needs_both_of_its_endpoints(service: HostileService, endpoint: str) -> None:
    """A service that takes no refresh is as much away as one that gives no claims."""
    application = conf.application()
    for _ in range(5):
        budget.note(application, endpoint, ServiceUnavailable())
    assert budget.is_away(application)
    assert not budget.may_try(application)
