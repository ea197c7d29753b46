"""Many callers at once, in processes and threads of their own, on the test's database.

``python -m tests.crowd module:function THREADS ARGUMENT…`` is what each process runs; it prints one
JSON line for each call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.db import connection, connections

ROOT = Path(__file__).resolve().parent.parent
DATABASE_KEYS = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")


def start(target: str, *arguments: object, threads: int = 1) -> subprocess.Popen[str]:
    """A process that calls ``target`` with ``arguments`` in that many threads."""
    command = [sys.executable, "-m", "tests.crowd", target, str(threads), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=shared(), stdout=subprocess.PIPE, text=True)


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
    settings.DATABASES["default"].update(given["database"])
    settings.DJANGO_IDENTITY = given["identity"]
    settings.CACHES = given["caches"]
    django.setup()


def outcomes(*processes: subprocess.Popen[str], patience: float = 60) -> list[Any]:
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


def _main(target: str, threads: str, *arguments: str) -> None:
    join()
    module, _, name = target.partition(":")
    function = getattr(import_module(module), name)
    with ThreadPoolExecutor(int(threads)) as pool:
        calls = [pool.submit(_called, function, list(arguments)) for _ in range(int(threads))]
    for call in calls:
        sys.stdout.write(call.result() + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
