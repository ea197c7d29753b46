"""A cache that takes its time to be read, as one across a network does."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache.backends.locmem import LocMemCache


class SlowCache(LocMemCache):
    """What was read is some milliseconds old when the reader has it."""

    def get(self, *args: Any, **kwargs: Any) -> Any:
        read = super().get(*args, **kwargs)
        time.sleep(0.03)
        return read
