"""A storm of events ends where calm would have ended.

From many processes at once; or when the web process dies in the middle of it: what it acknowledged
is there, and there once.
"""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from http.client import HTTPException

import pytest
from django.db import connection
from django.utils import timezone

from django_identity.lifecycle.leaving import erasure
from django_identity.models import ErasureReceipt, WebhookEvent
from tests import concurrency
from tests.deliveries import event_body
from tests.integration import storm
from tests.integration.gunicorn_server import GunicornServer, deliver
from tests.sandbox.receiver import until

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

BEGAN_AT = timezone.now().replace(microsecond=0) - timedelta(hours=2)
PROCESSES = 8
EVENTS = {"postgresql": 1_000}
FEWER_EVENTS = 200
TARGET = "tests.integration.storm:deliver_at_once"
DELETION = "data.deletion_requested"
SENDERS = 4
SENDING = 300.0
# Events and kills, by what the database can bear.
SIZES = {"postgresql": (300, 12)}
SMALLER = (80, 4)


def test_a_storm_ends_as_calm_does():
    """Eight processes at once, shuffled and repeated: the end of in-order single delivery."""
    count = EVENTS.get(connection.vendor, FEWER_EVENTS)
    calm = storm.calm_end(storm.in_order(count, BEGAN_AT), BEGAN_AT)
    storm.clear()
    storm.people(BEGAN_AT)
    forking = concurrency.start(TARGET, PROCESSES, count, BEGAN_AT)
    [statuses] = concurrency.outcomes(forking, patience=600)
    assert Counter(statuses) == {200: count + count * 3 // 10}
    assert WebhookEvent.objects.count() == count
    erasure.retry_pending()
    assert storm.differences(storm.end_state(), calm) == []


@pytest.mark.server
def test_a_killed_process_loses_nothing_and_repeats_nothing():
    """SIGKILL at random moments of a stream; whoever got no answer sends again."""
    count, kills = SIZES.get(connection.vendor, SMALLER)
    bodies = stream(count)
    calm = storm.calm_end(bodies, BEGAN_AT)
    storm.clear()
    storm.people(BEGAN_AT)
    answers: Counter[int | None] = Counter()
    with GunicornServer() as web, ThreadPoolExecutor(SENDERS) as pool:
        sending = [
            pool.submit(send, web, body, answers) for body in storm.shuffled(bodies)
        ]
        kill_at_random(web, answers, deliveries=len(sending), kills=kills)
        for each in sending:
            each.result()
    # 503: the lock of a process that is dead was not yet free.
    assert set(answers) <= {200, 503, None}
    assert WebhookEvent.objects.count() == len(bodies)
    # An effect that would show if it had come twice: each request writes a receipt of its own.
    assert ErasureReceipt.objects.count() >= count // 20
    erasure.retry_pending()
    assert storm.differences(storm.end_state(), calm) == []


def stream(count: int) -> list[bytes]:
    """Events of every kind, and at the end some people ask to be forgotten."""
    requests = [
        event_body(
            DELETION, subject=f"subject-{2 * n}", event_id=f"forget-{n}", at=BEGAN_AT
        )
        for n in range(count // 10)
    ]
    return storm.in_order(count - len(requests), BEGAN_AT) + requests


def send(web: GunicornServer, body: bytes, answers: Counter[int | None]) -> None:
    """Until it is acknowledged."""

    def is_acknowledged() -> bool:
        status = None
        with suppress(OSError, HTTPException):
            status = deliver(web.port, body)
        answers[status] += 1
        return status == 200

    until(is_acknowledged, seconds=SENDING)


def kill_at_random(
    web: GunicornServer, answers: Counter[int | None], *, deliveries: int, kills: int
) -> None:
    """Kill it so many times, each in the middle of something."""
    dice = random.Random()
    for acknowledged in sorted(dice.sample(range(deliveries * 9 // 10), kills)):
        until(lambda wanted=acknowledged: answers[200] >= wanted, seconds=SENDING)
        time.sleep(dice.uniform(0, 0.01))
        web.kill()
