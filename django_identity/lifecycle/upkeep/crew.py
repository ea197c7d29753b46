"""Work off a list of rows in several threads, each with its own database connection."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

from django.db import connections

T = TypeVar("T")
R = TypeVar("R")

Results = SimpleQueue[tuple[T, R] | BaseException | None]


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
    results: Results[T, R] = SimpleQueue()
    stopping = threading.Event()
    crew = [
        threading.Thread(target=copy_context().run, args=(_work, left, work, results, stopping))
        for _ in range(min(threads, len(left)))
    ]
    for member in crew:
        member.start()
    try:
        yield from _arriving(results, crew=len(crew))
    finally:
        stopping.set()
        for member in crew:
            member.join()


def _arriving(results: Results[T, R], *, crew: int) -> Generator[tuple[T, R]]:
    """The results until every member has ended. An exception of a member is raised here."""
    while crew:
        result = results.get()
        if isinstance(result, BaseException):
            raise result
        if result is None:
            crew -= 1
        else:
            yield result


def _work(
    left: deque[T], work: Callable[[T], R], results: Results[T, R], stopping: threading.Event
) -> None:
    try:
        while not stopping.is_set():
            try:
                item = left.popleft()
            except IndexError:
                return
            results.put((item, work(item)))
    except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
        results.put(error)
    finally:
        connections.close_all()
        results.put(None)
