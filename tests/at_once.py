"""Several callers at the same moment, each in a thread with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

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
