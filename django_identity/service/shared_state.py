"""What all workers know together, in Django's cache. A cache that fails holds up no call.

The cache must be one that processes share (Redis, Memcached, the database); with Django's default,
which is local to a process, each process keeps its own counts.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache

Value = TypeVar("Value")

logger = logging.getLogger("django_identity.shared_state")

# A moment in the year 2286. What is counted stays far below, and a date can be made of it.
LARGEST_NUMBER = 1e10


def read(name: str) -> float:
    """The number of that name; zero if there is none, or an impossible one."""
    number = _guarded(lambda: float(cache.get(name) or 0.0), otherwise=0.0)
    return number if math.isfinite(number) and 0.0 <= number <= LARGEST_NUMBER else 0.0


def kept(name: str) -> object:
    """Whatever is kept under that name: others may write there, so look before you believe it."""
    return _guarded(lambda: cache.get(name), otherwise=None)


def write(name: str, value: float | str, *, seconds: float) -> None:
    _guarded(lambda: cache.set(name, value, timeout=seconds), otherwise=None)


def keep(name: str, *, seconds: float) -> None:
    """Forget it no sooner than that long from now."""
    _guarded(lambda: cache.touch(name, seconds), otherwise=False)


def forget(*names: str) -> None:
    _guarded(lambda: cache.delete_many(names), otherwise=None)


def count(name: str, *, seconds: float) -> int:
    """One more; the count so far. It is forgotten ``seconds`` after it began."""

    def counted() -> int:
        cache.add(name, 0, timeout=seconds)
        try:
            return int(cache.incr(name))
        except ValueError:  # it ran out between the two calls, or nothing is kept at all
            return 1

    return _guarded(counted, otherwise=1)


def take_back(name: str) -> None:
    """One less, of a count that went too far."""

    def taken_back() -> None:
        try:
            cache.decr(name)
        except ValueError:
            return

    _guarded(taken_back, otherwise=None)


def claim(name: str, *, seconds: float) -> bool:
    """Whether this caller is the only one to hear yes, for that many seconds."""
    return _guarded(lambda: bool(cache.add(name, 1, timeout=seconds)), otherwise=True)


def _guarded(work: Callable[[], Value], *, otherwise: Value) -> Value:
    try:
        return work()
    except Exception as error:  # noqa: BLE001  any cache's own errors; a call is better than none
        logger.warning("the cache does not answer (%s)", type(error).__name__)
        return otherwise
