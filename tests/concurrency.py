"""Several callers at the same moment, in threads, or in a crowd of processes, on one database.

The processes are forked from one that has imported everything.
"""

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
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


@dataclass(frozen=True)
class Caller:
    """A process of the crowd, and where it says what its calls returned."""

    process: ForkServerProcess
    heard: Connection

    def exit_code(self) -> int | None:
        """Wait for its end. It is killed after ``PATIENCE`` seconds."""
        self.process.join(PATIENCE)
        self.process.kill()
        self.process.join()
        return self.process.exitcode


def start(target: str, *arguments: object, threads: int = 1) -> Caller:
    """A process that calls ``module:function`` with ``arguments`` in that many threads.

    On a database server only ``MOST_CONNECTIONS`` of them call at the same time.
    """
    heard, saying = FORKING.Pipe(duplex=False)
    process = FORKING.Process(
        target=_run, args=(saying, shared(), target, threads, arguments)
    )
    with saying:
        process.start()
    return Caller(process, heard)


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


def join() -> None:
    """Set Django up in this process, on the test's database and with its settings."""
    given = json.loads(os.environ["CROWD"])
    if not apps.ready:
        django.setup()
    connections.settings["default"].update(given["database"])
    override_settings(
        DJANGO_IDENTITY=given["identity"], CACHES=given["caches"]
    ).enable()


def outcomes(*callers: Caller, patience: float = PATIENCE) -> list[Any]:
    """What all calls of these processes returned."""
    said = []
    for caller in callers:
        # One that was killed or failed ends without a word.
        with caller.heard, suppress(EOFError):
            if caller.heard.poll(patience):
                said += caller.heard.recv()
        assert caller.exit_code() == 0
    return said


def _run(
    saying: Connection,
    environ: Mapping[str, str],
    target: str,
    threads: int,
    arguments: tuple[object, ...],
) -> None:
    os.environ.update(environ)
    join()
    module, _, name = target.partition(":")
    call = partial(getattr(import_module(module), name), *arguments)
    workers = (
        threads if connection.vendor == "sqlite" else min(threads, MOST_CONNECTIONS)
    )
    with ThreadPoolExecutor(workers) as pool:
        saying.send(list(pool.map(alone, [call] * threads)))


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
