"""Several callers at the same moment, in threads, or in a crowd of processes, on one database.

The processes are forked from one that has imported everything.
"""

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import django
from django.apps import apps
from django.conf import settings
from django.db import connection, connections
from django.test import override_settings

Result = TypeVar("Result")

ROOT = Path(__file__).resolve().parent.parent
DATABASE_KEYS = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
#: Of one process. A server has 100 connections, and up to four processes of a test share them.
MOST_CONNECTIONS = 20
#: A busy machine takes minutes over what an idle one does in a second.
PATIENCE = 240.0
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["tests.concurrency_imports"])


def in_processes(
    number: int,
    call: Callable[..., object],
    *arguments: object,
    threads: int = 1,
    patience: float = PATIENCE,
) -> list[Any]:
    """What ``call`` returned in each thread of so many processes. They are killed if they hang.

    On a database server only ``MOST_CONNECTIONS`` threads of a process call at the same time.
    """
    with ProcessPoolExecutor(number, FORKING, join, (shared(),)) as pool:
        begun = [
            pool.submit(_in_threads, threads, call, *arguments) for _ in range(number)
        ]
        try:
            return [each for process in begun for each in process.result(patience)]
        except TimeoutError:
            for process in multiprocessing.active_children():
                process.kill()
            raise


def shared() -> dict[str, str]:
    """The environment of a process that is to ``join``."""
    given = {
        "database": {name: connection.settings_dict[name] for name in DATABASE_KEYS},
        "identity": settings.DJANGO_IDENTITY,
        "caches": settings.CACHES,
    }
    return {
        **os.environ,
        "CROWD": json.dumps(given),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }


def join(environ: Mapping[str, str] = os.environ) -> None:
    """Set Django up in this process, on the test's database and with its settings."""
    os.environ.update(environ)
    given = json.loads(os.environ["CROWD"])
    if not apps.ready:
        django.setup()
    connections.settings["default"].update(given["database"])
    override_settings(
        DJANGO_IDENTITY=given["identity"],
        CACHES=given["caches"],
    ).enable()


def _in_threads(
    threads: int,
    call: Callable[..., object],
    *arguments: object,
) -> list[object]:
    most = threads if connection.vendor == "sqlite" else MOST_CONNECTIONS
    with ThreadPoolExecutor(min(threads, most)) as pool:
        return list(pool.map(alone, [partial(call, *arguments)] * threads))


def alone(call: Callable[[], Result]) -> Result:
    """What ``call`` returns, with a database connection of this thread's own."""
    try:
        return call()
    finally:
        connections.close_all()


def at_once(callers: Iterable[Callable[[], Result]]) -> list[Result]:
    """What each of ``callers`` returned, in their order; they start together."""
    waiting = list(callers)
    ready = threading.Barrier(len(waiting))

    def run(caller: Callable[[], Result]) -> Result:
        ready.wait()
        return alone(caller)

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(run, waiting))


@contextmanager
def meeting_at_update(barrier: threading.Barrier) -> Iterator[None]:
    """This thread waits for the others before it sends its first UPDATE."""
    seen: list[str] = []

    def wait(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE") and not seen:
            seen.append(sql)
            barrier.wait(PATIENCE)
        return execute(sql, *rest)

    with connection.execute_wrapper(wait):
        yield
