"""Deliveries that must wait for a transaction of somebody else, whose end they then see."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connection, connections

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


def alone(call: Callable[[], Result]) -> Result:
    """What ``call`` returns, with a database connection of this thread's own."""
    try:
        return call()
    finally:
        connections.close_all()


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
