"""Work off a list of rows in several threads, each with its own database connection."""

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

from django.db import connections

T = TypeVar("T")
R = TypeVar("R")


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
