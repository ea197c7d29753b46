"""A cache whose clock can be moved, and which counts what is asked of it."""

import time
from collections import Counter
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache


class ClockCache(LocMemCache):
    """``LocMemCache`` with ``ahead`` seconds added to its clock; ``asked`` counts its calls."""

    ahead = 0.0
    asked: Counter[str] = Counter()

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> float | None:
        runs_out = super().get_backend_timeout(timeout)
        return runs_out if runs_out is None else runs_out + self.ahead

    def _has_expired(self, key: str) -> bool:
        runs_out = self._expire_info.get(key, -1)
        return runs_out is not None and runs_out <= time.time() + self.ahead

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        self.asked["get"] += 1
        return super().get(key, default, version=version)

    def add(self, key: str, *args: Any, **kwargs: Any) -> bool:
        self.asked["add"] += 1
        return super().add(key, *args, **kwargs)

    def set(self, key: str, *args: Any, **kwargs: Any) -> None:
        self.asked["set"] += 1
        super().set(key, *args, **kwargs)

    def names(self) -> list[str]:
        """The keys that a caller would have to use to read what is held."""
        return [key.split(":", 2)[2] for key in self._cache if not self._has_expired(key)]
