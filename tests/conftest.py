"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from django_identity.lifecycle import key_sets


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    """No test sees a key set that another one fetched."""
    cache.clear()
    key_sets.forget()
    yield
    cache.clear()
    key_sets.forget()
