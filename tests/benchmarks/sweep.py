"""Handing out what is due of a million linked identities, beside the same of ten thousand.

One per cent of the million is due: 10,000 rows. Beside it stands a table of ten thousand identities
of which as many are due, so that the size of the table is all that differs; ``literally`` is beside
ten thousand identities of which one per cent is due, too. Each database is of its own, the rounds
alternate, and publishing to the broker is included. PostgreSQL alone.

Ratio ``per_due_row_vs_10k``: time for each due row of the million, divided by the other's; less is
better. Figures: microseconds a due row, due rows a second, and megabytes by which the process grew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from celery import Celery
from django.db import connection
from django.test import override_settings
from django.test.utils import setup_test_environment

from django_identity import background
from django_identity.lifecycle.upkeep import jobs
from tests.benchmarks.database import fresh_database
from tests.benchmarks.many_identities import fill, hand_back
from tests.benchmarks.runner import Result
from tests.hostile import hostile_service

ROUNDS = 7
TABLES = {"million": (1_000_000, 100), "ten_thousand": (10_000, 1), "literally": (10_000, 100)}


def run() -> Result:
    if connection.vendor != "postgresql":
        raise SystemExit("needs PostgreSQL: export $(.ci/services postgresql redis)")
    setup_test_environment()
    with ExitStack() as open_until_the_end:
        service = open_until_the_end.enter_context(hostile_service())
        setting = {"default": service.settings(RATE_LIMIT=None, TIMEOUT=5)}
        open_until_the_end.enter_context(override_settings(DJANGO_IDENTITY=setting))
        broker = open_until_the_end.enter_context(broker_of_its_own())
        databases = {
            name: open_until_the_end.enter_context(filled(name, *table))
            for name, table in TABLES.items()
        }
        return measured(databases, broker)


def measured(databases: dict[str, str], broker: Celery) -> Result:
    taken: dict[str, list[float]] = {name: [] for name in databases}
    grown = 0.0
    for _ in range(ROUNDS):
        for name, database in databases.items():
            use(database)
            before = resident_megabytes()
            taken[name].append(seconds_a_row())
            grown = max(grown, resident_megabytes(peak=True) - before)
            hand_back()
            broker.control.purge()
    each = {name: median(seconds) * 1e6 for name, seconds in taken.items()}
    figures = {f"{name}_us": microseconds for name, microseconds in each.items()}
    figures |= {"rows_per_second": 1e6 / each["million"], "grown_megabytes": grown}
    ratios = {
        "per_due_row_vs_10k": each["million"] / each["ten_thousand"],
        "per_due_row_vs_10k_literally": each["million"] / each["literally"],
    }
    return Result("sweep", ratios, figures)


def seconds_a_row() -> float:
    reset_peak()
    started = time.perf_counter()
    handed_out = jobs.sweep()
    return (time.perf_counter() - started) / handed_out


@contextmanager
def filled(name: str, count: int, one_due_in: int) -> Iterator[str]:
    """The name of a database that has so many identities."""
    connection.close()
    connection.settings_dict["TEST"]["NAME"] = f"bench_sweep_{name}_{os.getpid()}"
    with fresh_database():
        fill(count, one_due_in=one_due_in)
        yield connection.settings_dict["NAME"]


def use(database: str) -> None:
    if connection.settings_dict["NAME"] != database:
        connection.close()
        connection.settings_dict["NAME"] = database
        connection.ensure_connection()


@contextmanager
def broker_of_its_own() -> Iterator[Celery]:
    """The site's Celery application, on whatever ``CELERY_BROKER_URL`` names."""
    app = Celery("bench", broker=os.environ.get("CELERY_BROKER_URL", "memory://"))
    app.conf.task_default_queue = f"bench-{os.getpid()}"
    background.remember_app()
    yield app
    app.control.purge()
    app.close()


def resident_megabytes(*, peak: bool = False) -> float:
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    [line] = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) / 1024


def reset_peak() -> None:
    """Let the kernel measure the peak from here on (proc(5), ``clear_refs``)."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
