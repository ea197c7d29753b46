"""One deadline for a call, or for several together."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class _Deadline:
    """``ends_at``: of ``time.monotonic``."""

    ends_at: float


# The deadline of the current block, and those of the blocks around it.
_current: ContextVar[tuple[_Deadline, ...]] = ContextVar("identity_deadlines", default=())


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit all calls and network steps inside the block to ``seconds`` together.

    A block inside another one also ends with the outer one.
    """
    token = _current.set((*_current.get(), _Deadline(time.monotonic() + seconds)))
    try:
        yield
    finally:
        _current.reset(token)


def seconds_left() -> float:
    """The remaining seconds of the current block, negative after its end; infinite without one."""
    ends = (deadline.ends_at for deadline in _current.get())
    return min(ends, default=math.inf) - time.monotonic()


def postpone(seconds: float) -> None:
    """End the current blocks later, because the time was lost to something else."""
    for deadline in _current.get():
        deadline.ends_at += seconds
