"""Fixtures of the whole suite."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User, UserManager
from django.core.cache import cache
from django.db import connections
from django.test import override_settings

from django_identity import boundary
from django_identity.lifecycle.said import key_sets
from tests.emptied_tables import empty_sooner
from tests.fake_service import FakeService, serving
from tests.service.environment import forget_clients

# The first as a site's own conftest.py has it.
pytest_plugins = ["django_identity.testing.plugin", "tests.parameter_ids"]
# Every worker, and every process that a test starts, begins sooner with compiled files.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# pytest makes every warning an error: in the processes that a test starts, deprecated calls are.
os.environ["PYTHONWARNINGS"] = (
    "error::DeprecationWarning,error::PendingDeprecationWarning"
)
# Until the tests are collected there is no garbage to collect.
gc.disable()
ROOT = Path(__file__).resolve().parent.parent
WORKERS_BESIDE_CORES = 1
# Objects that are made before garbage is collected: with fewer it takes a part of each test's time.
GARBAGE = 50_000


def pytest_sessionfinish() -> None:
    """The connections that are kept for the next call would be warned of at the end."""
    forget_clients()


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no later collection of garbage reads it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """``-n auto``: one more than cores, for a worker often waits for a process or a deadline."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    # Not every system knows which cores this process may use.
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return cores + WORKERS_BESIDE_CORES


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is left out by default, and skip what needs a server where there is none."""
    if "integration" in item.path.parts:
        item.add_marker("integration")
    if item.get_closest_marker("server") and "CELERY_BROKER_URL" not in os.environ:
        item.add_marker(
            pytest.mark.skip(reason="needs servers: tox -e servers-postgresql"),
        )


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        empty_sooner()
    yield
    # Coroutines left a connection in the thread of what is synchronous, and nobody can take down
    # a database of PostgreSQL while somebody is connected.
    with django_db_blocker.unblock():
        asyncio.run(sync_to_async(connections.close_all)())


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    """No test sees a key set that another one fetched, nor a standing or counts it left behind."""
    yield
    cache.clear()
    key_sets.forget()


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as running, override_settings(DJANGO_IDENTITY=running.settings()):
        yield running


@pytest.fixture
def hiding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site's default manager hides the accounts that were closed."""

    class Shown(UserManager):
        def get_queryset(self) -> Any:
            return super().get_queryset().exclude(last_name="Closed")

    manager = Shown()
    manager.model = User
    manager.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", manager)
    monkeypatch.setattr(User, "objects", manager)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard as in a terminal: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def as_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    """No error of the site's code is seen as it is."""
    monkeypatch.setattr(boundary.tests, "see_errors", False)
