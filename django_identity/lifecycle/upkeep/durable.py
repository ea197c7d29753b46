"""Work that an outer transaction must not take back, done on a database connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.db import connection, connections, transaction

Result = TypeVar("Result")

# The caller's transaction may hold the very row, and waits for us: no database sees that circle.
PATIENCE = {
    "postgresql": ("SET lock_timeout = '2s'", "RESET lock_timeout"),
    "mysql": (
        "SET SESSION innodb_lock_wait_timeout = 2",
        "SET SESSION innodb_lock_wait_timeout = DEFAULT",
    ),
    "sqlite": ("PRAGMA busy_timeout = 2000", ""),
}


def durably(work: Callable[[], Result]) -> Result:
    """Do ``work`` where everything it writes stays written, and return what it returns.

    Outside a transaction that is here. Inside one it is a short-lived thread, which does not see
    what the transaction has written, and gives up on a row or a database (SQLite has one lock for
    all of it) that the transaction has locked: ``OperationalError`` after two seconds.
    """
    if not _could_roll_back():
        return work()
    context = copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="django-identity-durable") as pool:
        return pool.submit(context.run, _impatiently, work).result()


def may_read_first() -> bool:
    """Whether a look at the database now leaves ``durably`` room to write.

    A transaction of SQLite that has read may keep every other connection from committing.
    """
    return connection.vendor != "sqlite" or not _could_roll_back()


def _could_roll_back() -> bool:
    """Whether the caller is in a transaction. The one that Django's ``TestCase`` makes is none."""
    if connection.get_autocommit():
        return False
    if not connection.in_atomic_block:
        return True
    try:
        with transaction.atomic(durable=True):
            return False
    except RuntimeError:
        return True


def _impatiently(work: Callable[[], Result]) -> Result:
    before, after = PATIENCE.get(connection.vendor, ("", ""))
    try:
        _execute(before)
        try:
            return work()
        finally:
            _execute(after)
    finally:
        connections.close_all()


def _execute(statement: str) -> None:
    if statement:
        with connection.cursor() as cursor:
            cursor.execute(statement)
