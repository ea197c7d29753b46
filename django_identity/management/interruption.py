"""A clean stop: after Ctrl-C the current piece of work is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed or SIGTERM was sent.

    A second signal interrupts at once.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, _frame: object) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    wanted = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in wanted}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
