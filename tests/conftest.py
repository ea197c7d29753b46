"""Fixtures of the whole suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from django_identity.lifecycle import key_sets
from tests.kept_rows import keep_rows

# As a site's own conftest.py has it.
pytest_plugins = ["django_identity.testing.plugin"]
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}


# Begun last, one of these would keep one worker busy while the others have nothing left to do.
LONGEST_FILES = (
    "example_project/test_demo.py",
    "credentials/test_properties.py",
    "sandbox/test_deliveries.py",
    "sandbox/test_process.py",
    "lifecycle/test_model.py",
    "lifecycle/test_tokens.py",
    "lifecycle/key_sets/test_sharing.py",
    "faces/connect_sandbox/test_states.py",
    "servers/test_storm.py",
    "example_project/test_circle.py",
    "service/test_good_client.py",
    "lifecycle/test_upkeep.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """xdist would hand out the files with most tests first, and those take no longer."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_itemcollected(item: pytest.Item) -> None:
    """What uses the database runs on each kind of it: ``pytest -m "database or server"``."""
    fixtures = getattr(item, "fixturenames", ())
    if item.get_closest_marker("django_db") or not DATABASE_FIXTURES.isdisjoint(fixtures):
        item.add_marker("database")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        keep_rows()


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    """No test sees a key set that another one fetched."""
    cache.clear()
    key_sets.forget()
    yield
    cache.clear()
    key_sets.forget()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard as in a terminal: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
