"""A cache that fails at whatever is asked of it."""

from typing import Any

from django.core.cache.backends.base import BaseCache


class BrokenCache(BaseCache):
    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def fail(self, *_args: Any, **_kwargs: Any) -> Any:
        raise ConnectionError

    get = set = fail

    def clear(self) -> None:
        """There is nothing in it."""
