"""How many identities one worker process re-fetches in a second, and what the time goes into.

Each costs one refresh and one read; the service is an instant stand-in in a process of its own.
Figures: identities a second, queries each, and the shares of the time that are the database (its
driver's calls, as Django makes them) and the check of the credential. Ratio ``threads_vs_serial``:
four threads beside one, with a service that takes 20 ms to answer (not on SQLite).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db import connection
from django.test import override_settings
from django.test.utils import setup_test_environment
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.upkeep import jobs, key_sets
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service.answers import ClaimsAnswer
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result, seconds_of
from tests.records import make_grant, make_identity, make_user
from tests.servers.stand_in import claims_of, setting

IDENTITIES = 200
ROUNDS = 7
LATENCY = 0.02
MOST_QUERIES = 7.0


@dataclass
class Watched:
    """What went through Django's connection: seconds, and queries but for transactions."""

    seconds: float = 0.0
    queries: int = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, *rest)
        finally:
            self.seconds += time.perf_counter() - started
            self.queries += not sql.startswith(("SAVEPOINT", "RELEASE"))


def run() -> Result:
    setup_test_environment()
    with served() as origin, fresh_database(), set_up(origin, threads=1):
        ids = [make_due(number).pk for number in range(IDENTITIES)]
        chunks(ids)
        watched, taken = Watched(), []
        for _ in range(ROUNDS):
            fall_due()
            with connection.execute_wrapper(watched):
                started = time.perf_counter()
                chunks(ids)
                taken.append(time.perf_counter() - started)
        check = seconds_of({"check": a_check(origin)}, rounds=500)["check"]
    each, done = median(taken) / IDENTITIES, IDENTITIES * ROUNDS
    if (queries := watched.queries / done) > MOST_QUERIES:
        raise SystemExit(f"{queries:.2f} queries an identity")
    figures = {
        "identities_per_second": 1 / each,
        "queries_each": queries,
        "database_share": watched.seconds / sum(taken),
        "credential_check_share": check / each,
        "credential_check_us": check * 1e6,
    }
    return Result("refetch", {} if connection.vendor == "sqlite" else threads_vs_serial(), figures)


def threads_vs_serial() -> dict[str, float]:
    """Chunks of identities at a service that takes its time."""
    with served(LATENCY) as origin, fresh_database():
        ids = [make_due(number).pk for number in range(IDENTITIES)]
        taken = defaultdict(list)
        for _ in range(ROUNDS):
            for threads in (1, 4):
                with set_up(origin, threads=threads):
                    fall_due()
                    started = time.perf_counter()
                    chunks(ids)
                    taken[threads].append(time.perf_counter() - started)
    return {"threads_vs_serial": median(taken[1]) / median(taken[4])}


def set_up(origin: str, *, threads: int) -> AbstractContextManager[object]:
    """The setting of an application at the service there."""
    return override_settings(DJANGO_IDENTITY={"default": setting(origin, REFETCH_THREADS=threads)})


def chunks(ids: list[int]) -> None:
    """What the tasks of a sweep do, one after the other."""
    for begin in range(0, len(ids), jobs.CHUNK):
        chunk = ids[begin : begin + jobs.CHUNK]
        assert jobs.refetch_chunk(chunk)[Refetched.STORED] == len(chunk)


def make_due(number: int) -> LinkedIdentity:
    subject = f"subject-{number}"
    identity = make_identity(
        make_user(f"user-{number}"),
        subject=subject,
        scopes=["claims:read"],
        refetch_due_at=timezone.now(),
    )
    make_grant(
        identity,
        access_token=f"at-0-{subject}",
        refresh_token=f"rt-0-{subject}",
        access_expires_at=timezone.now(),
    )
    return identity


def fall_due() -> None:
    """Every identity is due, and its access token too old to be used."""
    now = timezone.now()
    LinkedIdentity.objects.update(refetch_due_at=now)
    TokenGrant.objects.update(access_expires_at=now)


def a_check(origin: str) -> Any:
    """A call of what verifies a credential, with the key set at hand."""
    body = claims_of("subject-1", origin)
    answer = ClaimsAnswer.parse(body)
    site = conf.application()
    key_sets.current(site)
    return lambda: key_sets.verify_answer(site, answer, subject="subject-1")


@contextmanager
def served(delay: float = 0) -> Iterator[str]:
    """The origin of a stand-in that uses none of this process's time."""
    command = [sys.executable, "-m", "tests.servers.stand_in", str(delay)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("")
