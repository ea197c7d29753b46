"""A cache whose clock can be moved."""

import time
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache


class ClockCache(LocMemCache):
    """``LocMemCache`` with ``ahead`` seconds added to its clock."""

    ahead = 0.0

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> float | None:
        runs_out = super().get_backend_timeout(timeout)
        return runs_out if runs_out is None else runs_out + self.ahead

    def _has_expired(self, key: str) -> bool:
        runs_out = self._expire_info.get(key, -1)
        return runs_out is not None and runs_out <= time.time() + self.ahead
