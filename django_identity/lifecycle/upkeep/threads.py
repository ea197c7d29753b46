"""Threads with their own database connections.

``durably`` writes so that an outer transaction cannot roll it back; ``work_off`` works off a list.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

from django.db import connections

from django_identity import database

T = TypeVar("T")
R = TypeVar("R")

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


def durably(work: Callable[[], R]) -> R:
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


def _impatiently(work: Callable[[], R]) -> R:
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


def work_off(left: deque[T], work: Callable[[T], R], *, threads: int) -> Generator[tuple[T, R]]:
    """Take each item from ``left``, and yield it with ``work(item)``, in the order of completion.

    When the generator is closed or ``work`` raises, no further item is taken, and the items in hand
    are finished. With one thread the caller's own thread works.
    """
    if threads <= 1 or len(left) <= 1:
        while left:
            item = left.popleft()
            yield item, work(item)
        return
    # Each thread puts None when it ends.
    results: SimpleQueue[tuple[T, R] | None] = SimpleQueue()
    stopping = threading.Event()

    def take_items() -> None:
        try:
            while not stopping.is_set():
                try:
                    item = left.popleft()
                except IndexError:
                    return
                results.put((item, work(item)))
        except BaseException:
            stopping.set()
            raise
        finally:
            connections.close_all()
            results.put(None)

    crew_size = min(threads, len(left))
    with ThreadPoolExecutor(crew_size) as pool:
        crew = [pool.submit(copy_context().run, take_items) for _ in range(crew_size)]
        try:
            for _ in crew:
                yield from iter(results.get, None)
        finally:
            stopping.set()
    for member in crew:
        member.result()
