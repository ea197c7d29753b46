"""One deadline for a call, or for several together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class _Deadline:
    """``ends_at``: of ``time.monotonic``. ``outer``: the deadline of the block around it."""

    ends_at: float
    outer: _Deadline | None

    def chain(self) -> Iterator[_Deadline]:
        yield self
        if self.outer is not None:
            yield from self.outer.chain()


_current: ContextVar[_Deadline | None] = ContextVar("identity_deadline", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit all calls and network steps inside the block to ``seconds`` together.

    A block inside another one also ends with the outer one.
    """
    token = _current.set(_Deadline(time.monotonic() + seconds, _current.get()))
    try:
        yield
    finally:
        _current.reset(token)


def seconds_left() -> float:
    """The remaining seconds of the current block, negative after its end; infinite without one."""
    current = _current.get()
    if current is None:
        return math.inf
    return min(deadline.ends_at for deadline in current.chain()) - time.monotonic()


def postpone(seconds: float) -> None:
    """End the current blocks later, because the time was lost to something else."""
    current = _current.get()
    for deadline in current.chain() if current else ():
        deadline.ends_at += seconds
