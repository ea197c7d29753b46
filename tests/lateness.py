"""How late the machine makes a test, for tests of deadlines on a busy machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

TICK = 0.01


@dataclass
class Lateness:
    """``seconds``: by how much a thread that sleeps ``TICK`` again and again woke up late."""

    seconds: float = 0.0


@contextmanager
def lateness() -> Iterator[Lateness]:
    """Measure it until the block ends, in a thread of its own."""
    measured, ended = Lateness(), threading.Event()

    def sleep_again_and_again() -> None:
        while not ended.is_set():
            began = time.monotonic()
            time.sleep(TICK)
            measured.seconds += time.monotonic() - began - TICK

    ticking = threading.Thread(target=sleep_again_and_again, daemon=True)
    ticking.start()
    try:
        yield measured
    finally:
        ended.set()
        ticking.join()
