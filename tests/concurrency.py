"""Several callers at the same moment, in threads, or in a crowd of processes, on one database.

The processes are forked from one that has imported everything; each prints one JSON line for each
call.
"""

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
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


class Caller:
    """A process of the crowd. ``stdout``: what it prints; ``returncode``: how it ended."""

    def __init__(self, target: str, threads: int, arguments: tuple[str, ...]) -> None:
        said, saying = FORKING.Pipe(duplex=False)
        given = (saying, shared(), target, threads, arguments)
        self._process = FORKING.Process(target=_run, args=given)
        with said, saying:
            self._process.start()
            self.stdout = os.fdopen(os.dup(said.fileno()), encoding="utf-8")

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, None]:
        """What it prints until its end. It is killed after ``timeout`` seconds."""
        too_late = threading.Timer(timeout, self.kill)
        too_late.start()
        with self.stdout:
            said = self.stdout.read()
        self._process.join()
        too_late.cancel()
        return said, None


def start(target: str, *arguments: object, threads: int = 1) -> Caller:
    """A process that calls ``module:function`` with ``arguments`` in that many threads.

    On a database server only ``MOST_CONNECTIONS`` of them call at the same time.
    """
    return Caller(target, threads, tuple(map(str, arguments)))


def shared() -> dict[str, str]:
    """The environment of a process that is to ``join``."""
    given = {
        "database": {name: connection.settings_dict[name] for name in DATABASE_KEYS},
        "identity": settings.DJANGO_IDENTITY,
        "caches": settings.CACHES,
    }
    return {**os.environ, "CROWD": json.dumps(given), "DJANGO_SETTINGS_MODULE": "tests.settings"}


def join() -> None:
    """Set Django up in this process, on the test's database and with its settings."""
    given = json.loads(os.environ["CROWD"])
    if not apps.ready:
        django.setup()
    connections.settings["default"].update(given["database"])
    override_settings(DJANGO_IDENTITY=given["identity"], CACHES=given["caches"]).enable()


def outcomes(*processes: Caller, patience: float = PATIENCE) -> list[Any]:
    """What all calls of these processes returned."""
    said = []
    for process in processes:
        output, _ = process.communicate(timeout=patience)
        assert process.returncode == 0
        said += [json.loads(line) for line in output.splitlines()]
    return said


def _called(function: Any, arguments: list[str]) -> str:
    try:
        return json.dumps(function(*arguments))
    finally:
        connections.close_all()


def _run(
    saying: Connection,
    environ: Mapping[str, str],
    target: str,
    threads: int,
    arguments: tuple[str, ...],
) -> None:
    os.dup2(saying.fileno(), sys.stdout.fileno())
    os.environ.clear()
    os.environ.update(environ)
    join()
    module, _, name = target.partition(":")
    function = getattr(import_module(module), name)
    at_once = threads if connection.vendor == "sqlite" else min(threads, MOST_CONNECTIONS)
    with saying, ThreadPoolExecutor(at_once) as pool:
        calls = [pool.submit(_called, function, list(arguments)) for _ in range(threads)]
    for call in calls:
        sys.stdout.write(call.result() + "\n")
    sys.stdout.flush()


def at_once(callers: Iterable[Callable[[], Result]]) -> list[Result]:
    """What each of ``callers`` returned, in their order; they start together."""
    waiting = list(callers)
    ready = threading.Barrier(len(waiting))

    def run(caller: Callable[[], Result]) -> Result:
        ready.wait()
        try:
            return caller()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(run, waiting))


@contextmanager
def meeting_at_update(barrier: threading.Barrier, number: int = 1) -> Iterator[None]:
    """This thread waits for the others before it sends its ``number``-th UPDATE."""
    seen: list[str] = []

    def wait(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE"):
            seen.append(sql)
            if len(seen) == number:
                barrier.wait(PATIENCE)
        return execute(sql, *rest)

    with connection.execute_wrapper(wait):
        yield
