"""A clean stop: Ctrl-C asks, and the work that is under way is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Gives a question: has anybody pressed Ctrl-C, or sent SIGTERM?

    The second time interrupts at once, as without this.
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
