"""Measure all contenders of each piece of work in turn, in one run, and take medians."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import distributions
from statistics import median
from typing import Any

from tests.benchmarks.peers.environment import Room

ROUNDS = 30
AT_ONCE = 8  # pieces of work before the next contender's turn
STARTS = 5
SIGN_IN = ("ours", "ours_all", "allauth", "allauth_tokens", "social", "oidc", "authlib")
WEBHOOK = ("ours_all", "dj_stripe")
START_UP = ("plain", "ours", "ours --jobs", "allauth", "social", "oidc", "authlib", "dj_stripe")
PACKAGES = (
    "django", "django-identity", "django-allauth", "social-auth-app-django",
    "mozilla-django-oidc", "authlib", "dj-stripe", "sd-jwt", "pyjwt", "joserfc", "cryptography",
)  # fmt: skip

Measured = dict[str, dict[str, float]]


def measure(room: Room) -> dict[str, Any]:
    began = os.getloadavg()[0]
    with _service(room) as origin:
        sign_in = _in_turn(room, "sign_in", SIGN_IN, service=origin)
        webhook = _in_turn(room, "webhook", WEBHOOK, service=origin)
    verification = json.loads(_output(room, room.module("verification")))
    start_up = _start_up(room)
    return {
        "machine": {
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "database": os.environ.get("DATABASE_URL", "sqlite:").partition(":")[0],
            "load": [round(began, 1), round(os.getloadavg()[0], 1)],
            "versions": _versions(room),
        },
        "sign_in": sign_in,
        "webhook": webhook,
        "verification": verification,
        "start_up": start_up,
    }


def _in_turn(room: Room, work: str, peers: Sequence[str], *, service: str) -> Measured:
    with ExitStack() as stack:
        workers = {
            peer: stack.enter_context(_worker(room, work, peer, service=service)) for peer in peers
        }
        queries = {peer: len(_told(worker)) for peer, worker in workers.items()}
        taken: dict[str, list[float]] = {peer: [] for peer in peers}
        for _ in range(ROUNDS):
            for peer, worker in workers.items():
                assert worker.stdin is not None
                print(AT_ONCE, file=worker.stdin, flush=True)
                taken[peer] += _told(worker)
    return {
        peer: {"cpu_ms": median(taken[peer]), "queries": float(queries[peer])} for peer in peers
    }


@contextmanager
def _worker(room: Room, work: str, peer: str, *, service: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        room.module("worker", work),
        cwd=room.folder,
        env=room.variables(PEER=peer, SERVICE=service),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _told(worker: subprocess.Popen[str]) -> list[Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"{worker.args} ended")
    told: list[Any] = json.loads(line)
    return told


@contextmanager
def _service(room: Room) -> Iterator[str]:
    command = room.module("service")
    with subprocess.Popen(
        command, cwd=room.folder, env=room.variables(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _start_up(room: Room) -> dict[str, Measured]:
    """The medians of fresh processes, and what each costs more than Django alone."""
    taken: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in START_UP}
    for _ in range(STARTS + 1):  # the first round fills the disk's cache
        for name in START_UP:
            peer, *flags = name.split()
            text = _output(room, room.module("start_up", *flags), PEER=peer)
            taken[name].append(json.loads(text))
    medians = {
        name: {
            moment: {
                unit: median(each[moment][unit] for each in runs[1:])
                for unit in ("cpu_ms", "megabytes")
            }
            for moment in ("set_up", "with_urls")
        }
        for name, runs in taken.items()
    }
    return {name: _beyond(measured, medians["plain"]) for name, measured in medians.items()}


def _beyond(measured: Measured, plain: Measured) -> Measured:
    if measured is plain:
        return measured
    return {
        moment: {unit: max(0.0, value - plain[moment][unit]) for unit, value in costs.items()}
        for moment, costs in measured.items()
    }


def _output(room: Room, command: list[str], **variables: str) -> str:
    finished = subprocess.run(
        command,
        cwd=room.folder,
        env=room.variables(**variables),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return finished.stdout


def _versions(room: Room) -> Mapping[str, str]:
    installed = {
        found.metadata["Name"].lower(): found.version
        for found in distributions(
            path=[str(next(room.python.parents[1].glob("lib/*/site-packages")))]
        )
    }
    return {name: installed[name] for name in PACKAGES}
