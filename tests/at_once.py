"""Several callers at the same moment, each in a thread with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, connections

Result = TypeVar("Result")


def at_once(callers: Iterable[Callable[[], Result]]) -> list[Result]:
    """What each of ``callers`` returned, in their order; they start together."""
    waiting = list(callers)
    ready = threading.Barrier(len(waiting))

    def run(caller: Callable[[], Result]) -> Result:
        ready.wait()
        try:
            return caller()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(run, waiting))


@contextmanager
def meeting_at_update(barrier: threading.Barrier, number: int = 1) -> Iterator[None]:
    """This thread waits for the others before it sends its ``number``-th UPDATE."""
    seen: list[str] = []

    def wait(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE"):
            seen.append(sql)
            if len(seen) == number:
                barrier.wait(timeout=10)
        return execute(sql, *rest)

    with connection.execute_wrapper(wait):
        yield
