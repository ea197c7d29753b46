"""Counters that all processes share, in Django's cache. If the cache fails, calls continue.

The processes must share the cache (Redis, Memcached, the database). With Django's default cache,
which is local to a process, each process counts alone. After a failure the process does not use the
cache for some seconds. The wait for a cache that does not answer extends the deadlines of the call.
"""

import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import CacheHandler, caches
from django.core.cache.backends.base import BaseCache
from django.core.signals import setting_changed

from django_identity.service.transport import deadline

Value = TypeVar("Value")

# A longer wait is not the call's own time.
PATIENCE = 0.25
SKIPPED = 10.0
# The site's own time-outs suit its pages. Counters are worth less, so they wait less. Threads may
# share each of these.
SOCKET_SECONDS = 0.4
SOCKET_OPTIONS = {
    "django.core.cache.backends.redis.RedisCache": ("socket_timeout", "socket_connect_timeout"),
    "django.core.cache.backends.memcached.PyMemcacheCache": ("timeout", "connect_timeout"),
    "django_redis.cache.RedisCache": ("SOCKET_TIMEOUT", "SOCKET_CONNECT_TIMEOUT"),
}

logger = logging.getLogger("django_identity.shared_state")


# The time (``time.monotonic``) until which this process does not use the cache.
_silent_until = 0.0
# A time in the year 2286. Valid numbers are smaller, and a datetime can represent all of them.
LARGEST_NUMBER = 1e10


def read(name: str) -> float:
    """The number under ``name``, or zero if it is missing or invalid."""
    number = _guard(lambda: float(_cache().get(name) or 0.0), otherwise=0.0)
    return number if math.isfinite(number) and 0.0 <= number <= LARGEST_NUMBER else 0.0


def write(name: str, value: float | str, *, seconds: float) -> None:
    _guard(lambda: _cache().set(name, value, timeout=seconds), otherwise=None)


def keep(name: str, *, seconds: float) -> None:
    """Keep the value for at least ``seconds`` from now."""
    _guard(lambda: _cache().touch(name, seconds), otherwise=False)


def forget(*names: str) -> None:
    _guard(lambda: _cache().delete_many(names), otherwise=None)


def count(name: str, *, seconds: float, step: int = 1) -> int:
    """Increment the counter and return it. It expires ``seconds`` after its first increment."""

    def increment() -> int:
        _cache().add(name, 0, timeout=seconds)
        try:
            return int(_cache().incr(name, step))
        except ValueError:  # it ran out between the two calls, or nothing is kept at all
            return step

    return _guard(increment, otherwise=step)


def take_back(name: str) -> None:
    """Decrement a counter that was incremented too often."""

    def decrement() -> None:
        with suppress(ValueError):
            _cache().decr(name)

    _guard(decrement, otherwise=None)


def claim(name: str, *, seconds: float) -> bool:
    """Return True to one caller only, once in ``seconds``."""
    return _guard(lambda: bool(_cache().add(name, 1, timeout=seconds)), otherwise=True)


def remember(name: str, make: Callable[[], Value], *, kind: type[Value], seconds: float) -> Value:
    """The value under ``name``, an instance of ``kind``; or a new one, which is then kept."""
    held: Any = _guard(lambda: _cache().get(name), otherwise=None)
    if isinstance(held, kind):
        return held
    made = make()
    _guard(lambda: _cache().set(name, made, timeout=seconds), otherwise=None)
    return made


def _cache() -> BaseCache:
    """The site's default cache, with short time-outs where the backend takes them."""
    return _pooled(os.getpid()) or caches["default"]


@once
def _pooled(process: int) -> BaseCache | None:
    """The cache of all threads of ``process``, if its backend has a pool of connections.

    Django makes one for each thread, and a thread that ends leaves its connections open.
    """
    given = settings.CACHES["default"]
    names = SOCKET_OPTIONS.get(given["BACKEND"])
    if names is None:
        return None
    options = {**given.get("OPTIONS", {}), **dict.fromkeys(names, SOCKET_SECONDS)}
    return CacheHandler({"default": {**given, "OPTIONS": options}}).create_connection("default")


def _guard(work: Callable[[], Value], *, otherwise: Value) -> Value:
    """The result of ``work``, or ``otherwise`` if the cache fails or has just failed."""
    global _silent_until
    began = time.monotonic()
    if began < _silent_until:
        return otherwise
    try:
        return work()
    except Exception as error:  # noqa: BLE001  any cache's own errors; a call is better than none
        logger.warning("the cache does not answer (%s)", type(error).__name__)
        _silent_until = time.monotonic() + SKIPPED
        return otherwise
    finally:
        waited = time.monotonic() - began
        if waited > PATIENCE:
            deadline.postpone(waited)


def _ask_again(*, setting: str, **_kwargs: object) -> None:
    global _silent_until
    if setting == "CACHES":
        _silent_until = 0.0
        _pooled.cache_clear()


setting_changed.connect(_ask_again, dispatch_uid="django_identity.shared_state")
