"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from django_identity.lifecycle import key_sets

# As a site's own conftest.py has it.
pytest_plugins = ["django_identity.testing.plugin"]
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """What uses the database runs on each kind of it: ``pytest -m "database or server"``."""
    fixtures = getattr(item, "fixturenames", ())
    if item.get_closest_marker("django_db") or not DATABASE_FIXTURES.isdisjoint(fixtures):
        item.add_marker("database")


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    """No test sees a key set that another one fetched."""
    cache.clear()
    key_sets.forget()
    yield
    cache.clear()
    key_sets.forget()
