"""Deliveries that must wait for a transaction of somebody else, whose end they then see."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, connections, transaction

from tests.deliveries import post

Result = TypeVar("Result")

PATIENCE = 60.0
# SQLite does not say who waits; nobody can write there but whoever has begun.
LONG_ENOUGH = 0.3
WAITING = {
    # What a transaction has seen of the others' activity stays the same until it says otherwise.
    "postgresql": (
        "SELECT pg_stat_clear_snapshot()",
        "SELECT COUNT(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    ),
    "mysql": (
        "SELECT COUNT(*) FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command = 'Query' AND time_ms > 200",
    ),
}


def delivered_during(change: Callable[[], object], *bodies: bytes) -> list[int]:
    """The statuses of deliveries, one after another, that came in before ``change`` committed.

    Each is on its way and waits for something before the next one comes.
    """
    with ThreadPoolExecutor(len(bodies)) as pool:
        with transaction.atomic():
            change()
            sent = []
            for number, body in enumerate(bodies, start=1):
                sent.append(pool.submit(_status, body))
                until_waiting(number)
        return [each.result(PATIENCE) for each in sent]


def alone(call: Callable[[], Result]) -> Result:
    """What ``call`` returns, with a database connection of this thread's own."""
    try:
        return call()
    finally:
        connections.close_all()


def _status(body: bytes) -> int:
    return alone(lambda: post(body).status_code)


def until_waiting(count: int, *, unless: Callable[[], bool] = lambda: False) -> None:
    """Return when so many are waiting for a lock, or there is nobody left who could."""
    if connection.vendor == "sqlite":
        time.sleep(LONG_ENOUGH)
        return
    gives_up = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while time.monotonic() < gives_up:
            for statement in WAITING[connection.vendor]:
                cursor.execute(statement)
            if cursor.fetchone()[0] >= count or unless():
                return
            time.sleep(0.01)
    raise TimeoutError
