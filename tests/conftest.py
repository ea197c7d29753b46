"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.standing.request_memory import memory
from django_identity.lifecycle.upkeep import key_sets
from tests.kept_rows import keep_rows

# As a site's own conftest.py has it.
pytest_plugins = ["django_identity.testing.plugin"]
# Every worker, and every process that a test starts, begins sooner with compiled files.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Until the tests are collected there is no garbage to collect.
gc.disable()
ROOT = Path(__file__).resolve().parent.parent
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}


# Begun last, one of these would keep one worker busy while the others have nothing left to do.
LONGEST_FILES = (
    "servers/test_killed_workers.py",
    "servers/test_storm.py",
    "servers/test_crash.py",
    "example_project/test_demo.py",
    "example_project/test_event_walk.py",
    "sandbox/test_process.py",
    "sandbox/test_tls.py",
    "faces/test_switches.py",
    "lifecycle/test_refresh_races.py",
    "lifecycle/test_away.py",
    "faces/test_live_beside_test.py",
    "faces/test_calendar_edges.py",
    "sandbox/test_way_in.py",
    "service/test_budget.py",
    "faces/connect/test_twice.py",
    "lifecycle/test_intake_races.py",
    "lifecycle/test_callback_deadline.py",
    "sandbox/test_deliveries.py",
    "sandbox/test_console.py",
    "faces/test_gates_closed.py",
    "lifecycle/test_upkeep.py",
    "credentials/test_properties.py",
    "faces/test_tasks.py",
    "service/test_good_client.py",
    "lifecycle/test_consent.py",
    "lifecycle/key_sets/test_answer.py",
    "example_project/test_circle.py",
    "faces/connect_sandbox/test_answers.py",
    "faces/connect_sandbox/test_states.py",
    "faces/bad_input/test_answers.py",
    "openapi/test_sandbox_document.py",
    "lifecycle/test_model.py",
    "faces/test_arabic.py",
    "sandbox/test_languages.py",
    "sandbox/test_pages.py",
    "sandbox/test_user_endpoints.py",
    "testing/test_fixtures.py",
    "test_strict_json.py",
)
WORKERS_BESIDE_CORES = 1
# Objects that are made before garbage is collected: with fewer it takes a part of each test's time.
GARBAGE = 50_000


def pytest_configure(config: pytest.Config) -> None:
    """xdist would hand out the files with most tests first, and those take no longer."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a fresh clone, each worker of xdist compiles a share of the test files for all of them.

    Otherwise all of them would compile the same file at the same time. A file that cannot be
    imported, or warns, is imported again by the collection, which reports it.
    """
    given = getattr(session.config, "workerinput", None)
    if given is None or [Path(each).name for each in session.config.args] != ["tests"]:
        return
    number, count = int(given["workerid"].removeprefix("gw")), given["workercount"]
    files = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if (path.parent / "__init__.py").exists()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in files[number::count]:
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


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
    """No test sees a key set that another one fetched, nor a standing or counts it left behind."""
    cache.clear()
    key_sets.forget()
    tallies.forget()
    memory.end()
    yield
    cache.clear()
    key_sets.forget()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard as in a terminal: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
