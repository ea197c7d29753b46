"""A cache whose server is gone."""

from __future__ import annotations

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
