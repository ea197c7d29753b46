"""Counters that all processes share, in Django's cache. If the cache fails, calls continue.

The processes must share the cache (Redis, Memcached, the database). With Django's default cache,
which is local to a process, each process counts alone.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.core.cache import cache
from django.core.signals import setting_changed

Value = TypeVar("Value")

PATIENCE = 0.5
SKIPPED = 10.0

logger = logging.getLogger("django_identity.shared_state")


@dataclass(slots=True)
class _Silence:
    """The time (``time.monotonic``) until which this process does not use the cache."""

    until: float = 0.0


_silence = _Silence()

# A time in the year 2286. Valid numbers are smaller, and a datetime can represent all of them.
LARGEST_NUMBER = 1e10


def read(name: str) -> float:
    """The number under ``name``, or zero if it is missing or invalid."""
    number = _guarded(lambda: float(cache.get(name) or 0.0), otherwise=0.0)
    return number if math.isfinite(number) and 0.0 <= number <= LARGEST_NUMBER else 0.0


def write(name: str, value: float | str, *, seconds: float) -> None:
    _guarded(lambda: cache.set(name, value, timeout=seconds), otherwise=None)


def keep(name: str, *, seconds: float) -> None:
    """Keep the value for at least ``seconds`` from now."""
    _guarded(lambda: cache.touch(name, seconds), otherwise=False)


def forget(*names: str) -> None:
    _guarded(lambda: cache.delete_many(names), otherwise=None)


def count(name: str, *, seconds: float) -> int:
    """Increment the counter and return it. It expires ``seconds`` after its first increment."""

    def counted() -> int:
        cache.add(name, 0, timeout=seconds)
        try:
            return int(cache.incr(name))
        except ValueError:  # it ran out between the two calls, or nothing is kept at all
            return 1

    return _guarded(counted, otherwise=1)


def take_back(name: str) -> None:
    """Decrement a counter that was incremented too often."""

    def taken_back() -> None:
        try:
            cache.decr(name)
        except ValueError:
            return

    _guarded(taken_back, otherwise=None)


def claim(name: str, *, seconds: float) -> bool:
    """Return True to one caller only, once in ``seconds``."""
    return _guarded(lambda: bool(cache.add(name, 1, timeout=seconds)), otherwise=True)


def _guarded(work: Callable[[], Value], *, otherwise: Value) -> Value:
    """The result of ``work``, or ``otherwise`` if the cache fails or has just not answered."""
    began = time.monotonic()
    if began < _silence.until:
        return otherwise
    try:
        return work()
    except Exception as error:  # noqa: BLE001  any cache's own errors; a call is better than none
        logger.warning("the cache does not answer (%s)", type(error).__name__)
        return otherwise
    finally:
        # A cache that does not answer costs its time-out once, not for every access.
        if time.monotonic() - began > PATIENCE:
            _silence.until = time.monotonic() + SKIPPED


def _ask_again(*, setting: str, **_kwargs: object) -> None:
    if setting == "CACHES":
        _silence.until = 0.0


setting_changed.connect(_ask_again, dispatch_uid="django_identity.shared_state")
