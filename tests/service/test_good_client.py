"""Being a good client: retries where they are safe, and a service that is away left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_identity import conf
from django_identity.exceptions import (
    MalformedAnswer,
    ServiceAway,
    ServiceRefusal,
    ServiceTimeout,
    ServiceUnavailable,
)
from django_identity.service import budget
from django_identity.service.budget import Priority
from tests.hostile import HostileService, hostile_service, html, impatient, refusal, reset, silent
from tests.service.calls import client, configured, read


@pytest.fixture
def service() -> Iterator[HostileService]:
    with hostile_service() as running, impatient(running):
        yield running


def failing(service: HostileService, times: int, bad: Any) -> None:
    """The next ``times`` reads get ``bad``, then all is well."""
    left = [bad] * times
    service.answers["kyc"] = left[0]

    def count() -> None:
        if left:
            service.answers["kyc"] = left.pop()
        else:
            service.answers.pop("kyc", None)

    service.meanwhile["kyc"] = count


@pytest.mark.parametrize("bad", [html("502 Bad"), html("503 Bad"), html("504 Bad"), reset])
def test_a_read_is_tried_again(service: HostileService, bad: Any) -> None:
    """No connection, 502, 503 and 504 are tried up to three times."""
    failing(service, 2, bad)
    read()
    assert service.calls("kyc") == 3


@pytest.mark.parametrize("bad", [html("503 Bad"), reset])
def test_three_tries_are_all(service: HostileService, bad: Any) -> None:
    """What still fails then is an error."""
    service.answers["kyc"] = bad
    with pytest.raises(ServiceUnavailable):
        read()
    assert service.calls("kyc") == 3


@pytest.mark.parametrize(
    "bad", [html("500 Bad"), html("501 Bad"), html("404 Bad"), html(), silent],
    ids=["500", "501", "404", "html", "silent"],
)  # fmt: skip
def test_nothing_else_is_tried_again(service: HostileService, bad: Any) -> None:
    """An answer that another try would not mend, and a time-out, are final."""
    service.answers["kyc"] = bad
    with pytest.raises(Exception, match="kyc"):
        read()
    assert service.calls("kyc") == 1


@pytest.mark.parametrize("bad", [html("503 Bad"), reset, silent], ids=["503", "reset", "silent"])
@pytest.mark.parametrize(
    "send",
    [
        lambda: client().refresh("rt"),
        lambda: client().exchange_code(code="c", code_verifier="v", redirect_uri="https://x.y/z"),
    ],
    ids=["refresh", "code"],
)
def test_a_token_call_is_sent_once(
    service: HostileService, bad: Any, send: Callable[[], object]
) -> None:
    """Whatever happens to it."""
    service.answers["token"] = bad
    with pytest.raises(ServiceUnavailable):
        send()
    assert service.calls("token") == 1


def test_the_pause_before_another_try_is_left_to_chance(service: HostileService) -> None:
    """A tenth of a second, more or less: what failed together does not come back together."""
    pauses: list[float] = []
    while not pauses or min(pauses) > 0.09 or max(pauses) < 0.11:
        # One pause in four is neither, so that this many in a row are no chance.
        assert len(pauses) < 40, pauses
        pauses.append(pause_before_the_second_try(service))
    assert min(pauses) >= 0.05


def pause_before_the_second_try(service: HostileService) -> float:
    tries: list[float] = []
    failing(service, 1, html("503 Bad"))
    fail = service.meanwhile["kyc"]
    service.meanwhile["kyc"] = lambda: (tries.append(time.monotonic()), fail())[1]
    read()
    first, second = tries
    return second - first


def test_retries_end_with_the_deadline(service: HostileService) -> None:
    """All tries and pauses together take no longer than one call may."""
    service.answers["kyc"] = silent
    failing(service, 1, html("503 Bad"))
    service.meanwhile["kyc"] = lambda: service.answers.update(kyc=silent)
    began = time.monotonic()
    with pytest.raises(ServiceTimeout):
        read()
    assert time.monotonic() - began < 0.9


def test_a_slow_first_try_leaves_the_next_one_less_time(service: HostileService) -> None:
    """The deadline is the call's, not each try's."""

    def fail_slowly() -> None:
        time.sleep(0.6)
        service.answers["kyc"] = html("503 Bad")
        service.meanwhile["kyc"] = lambda: service.answers.update(kyc=silent)

    service.meanwhile["kyc"] = fail_slowly
    began = time.monotonic()
    with configured(service, TIMEOUT=1.0), pytest.raises(ServiceTimeout):
        read()
    assert service.calls("kyc") == 2
    assert time.monotonic() - began < 1.5


def test_a_service_that_is_away_is_left_alone(service: HostileService) -> None:
    """After five failures upkeep makes no call but one in each pause; people's calls are made."""
    service.answers["claims"] = html("500 Oops")
    for _ in range(5):
        with pytest.raises(ServiceUnavailable):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    application = conf.application()
    assert budget.is_away(application)
    assert not budget.may_try(application)
    for _ in range(20):
        with pytest.raises(ServiceAway):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    assert service.calls("claims") == 5
    with pytest.raises(ServiceUnavailable):
        client().claims("subject-1", access_token="at")
    assert service.calls("claims") == 6


def test_one_worker_tries_when_the_pause_is_over(service: HostileService) -> None:
    """Of a hundred workers one makes the first call; its success lets all go on."""
    for _ in range(5):
        budget.note(conf.application(), "claims", ServiceUnavailable())
    time.sleep(1.01)
    assert budget.may_try(conf.application())
    both = threading.Barrier(2)
    service.meanwhile["claims"] = lambda: (both.wait(5), None)[1]
    outcomes: list[type[Exception] | None] = []

    def work() -> None:
        try:
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
            outcomes.append(None)
        except ServiceAway:
            outcomes.append(ServiceAway)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    both.wait(5)
    for thread in threads:
        thread.join()
    assert outcomes.count(None) == 1
    service.meanwhile.clear()
    assert not budget.is_away(conf.application())
    client(Priority.UPKEEP).claims("subject-1", access_token="at")


def test_a_refusal_is_an_answer(service: HostileService) -> None:
    """A service that says no is there: 4xx never counts as being away."""
    service.answers["claims"] = refusal("NOT_FOUND", "404 No")
    for _ in range(10):
        with pytest.raises(ServiceRefusal):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    assert not budget.is_away(conf.application())


@pytest.mark.parametrize("status", ["200 OK", "401 No", "403 No", "404 No"])
def test_a_page_where_an_answer_should_be_is_an_outage(
    service: HostileService, status: str
) -> None:
    """Something before the service answers in its place, with whatever status."""
    service.answers["claims"] = html(status)
    for _ in range(budget.FAILURES_IN_A_ROW):
        with pytest.raises((ServiceUnavailable, MalformedAnswer)):
            client(Priority.UPKEEP).claims("subject-1", access_token="at")
    assert budget.is_away(conf.application())
