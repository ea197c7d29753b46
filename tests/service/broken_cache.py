"""Caches whose server is gone, or silent."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache.backends.base import BaseCache


class BrokenCache(BaseCache):
    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def _gone(self, *_given: Any, **_named: Any) -> Any:
        raise ConnectionError("the cache is gone")

    add = get = set = incr = decr = delete = delete_many = _gone

    def clear(self) -> None:
        return


class SilentCache(BrokenCache):
    """A cache whose server says nothing: each question ends with the client's time-out."""

    asked = 0

    def _gone(self, *_given: Any, **_named: Any) -> Any:
        SilentCache.asked += 1
        time.sleep(0.6)
        raise TimeoutError("the cache is silent")

    add = get = set = incr = decr = delete = delete_many = _gone
