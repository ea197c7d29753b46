"""Write to the database so that an outer transaction cannot roll it back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.db import connections

from django_identity import database

Result = TypeVar("Result")

# The caller's transaction may have locked the same row while it waits for this thread. No database
# detects that deadlock, so give up after this time.
PATIENCE = {
    "postgresql": ("SET lock_timeout = '2s'", "RESET lock_timeout"),
    "mysql": (
        "SET SESSION innodb_lock_wait_timeout = 2",
        "SET SESSION innodb_lock_wait_timeout = DEFAULT",
    ),
    "sqlite": ("PRAGMA busy_timeout = 2000", ""),
}


def durably(work: Callable[[], Result]) -> Result:
    """Run ``work`` so that its writes are committed, and return its result.

    Outside a transaction it runs here. Inside a transaction it runs in a thread with its own
    database connection. That thread does not see the transaction's changes. If the transaction has
    locked the row (or the database, on SQLite), ``OperationalError`` is raised after two seconds.
    """
    if not _could_roll_back():
        return work()
    context = copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="django-identity-durable") as pool:
        return pool.submit(context.run, _impatiently, work).result()


def may_read_first() -> bool:
    """Whether reading now still allows ``durably`` to write.

    On SQLite a transaction that has read may block commits of all other connections.
    """
    return database.connection().vendor != "sqlite" or not _could_roll_back()


def _could_roll_back() -> bool:
    """Whether the caller is in a transaction, other than that of Django's ``TestCase``."""
    if database.connection().get_autocommit():
        return False
    if not database.connection().in_atomic_block:
        return True
    try:
        with database.atomic(durable=True):
            return False
    except RuntimeError:
        return True


def _impatiently(work: Callable[[], Result]) -> Result:
    before, after = PATIENCE.get(database.connection().vendor, ("", ""))
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
        with database.connection().cursor() as cursor:
            cursor.execute(statement)
