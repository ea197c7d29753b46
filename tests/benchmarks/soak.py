"""Minutes of mixed load on a site under gunicorn: no error, and nothing that grows.

PostgreSQL (``DATABASE_URL``) and Redis (``CELERY_BROKER_URL``). The sandbox, two gunicorn processes
of four threads, a Celery worker of two processes and beat are processes of their own. Four people
at a time, each from an address of their own, sign up and in through the sandbox, open gated pages,
enter Connect codes, are verified anew (a webhook and a re-fetch), or are operators who open the
admin. Every few seconds some identities fall due.

An error is an unexpected page, or a line in the log of a server or a worker. What grows is found by
comparing the last third of the time with the second: the memory of each process and the size of the
tables whose rows the jobs rewrite, by their medians; open files, threads and connections to the
database, which vary with the work in hand, by the least. Both end the benchmark with an error.
``--seconds`` shortens it (300).
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection, connections
from django.utils import timezone

from django_identity.models import DailyTally, JobRun, LinkedIdentity, TokenGrant
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson, running_sandbox
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result
from tests.sites.browser import Browser
from tests.sites.people import OPERATOR, PASSWORD
from tests.sites.running import (
    ROOT,
    RunningSite,
    free_port,
    registered,
    wait_until_it_answers,
)
from tests.sites.table import Site

SECONDS = 300
WALKERS = 4
MEMBERS = 400
DUE_AT_ONCE = 20
VACUUM_EVERY = 5
PAUSE, PATIENCE = 2.0, 120.0
# What an interpreter that is not leaking still varies by.
MEMORY_SHARE, MEMORY_MEGABYTES = 1.05, 2.0
SPARE = 1
# A pool that fills as it is used may still get a connection for each thread of a chunk.
SPARE_FILES = 4
TABLE_SHARE, TABLE_MEGABYTES = 1.5, 1.0
REWRITTEN = (LinkedIdentity, TokenGrant, JobRun, DailyTally)
SHOWN = 10
PAGES = ("linkedidentity", "webhookevent", "erasurereceipt", "overview")


class AddressedSite(RunningSite):
    """Each browser has an address of its own, as people have."""

    addresses = itertools.count(1)

    def new_client(self) -> httpx.Client:
        number = next(self.addresses)
        address = f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(trust_env=False, timeout=30, transport=transport)


@dataclass
class Load:
    """What the people of the benchmark do, each step for itself, until ``until``."""

    site: AddressedSite
    until: float
    people: list[SandboxPerson] = field(default_factory=list)
    members: Iterator[int] = field(default_factory=lambda: iter(range(MEMBERS)))
    done: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def walk(self, number: int) -> None:
        dice = random.Random(number)
        steps: dict[Callable[[random.Random], None], int] = {
            self.sign_up: 2, self.come_back: 8, self.verify_anew: 3, self.enter_code: 2,
            self.operate: 3,
        }  # fmt: skip
        self._take(self.sign_up, dice)
        while time.monotonic() < self.until:
            [step] = dice.choices(list(steps), list(steps.values()))
            self._take(step, dice)

    def _take(self, step: Callable[[random.Random], None], dice: random.Random) -> None:
        name = step.__name__
        try:
            step(dice)
        except Exception as error:  # noqa: BLE001  whatever it is, the benchmark reports it
            self.errors.append(f"{name}: {type(error).__name__} {error}"[:500])
        self.done[name] += 1

    def sign_up(self, _dice: random.Random) -> None:
        person = self.site.sandbox.create_person()
        self._sign_in(person)
        self.people.append(person)

    def come_back(self, dice: random.Random) -> None:
        self._sign_in(dice.choice(self.people))

    def verify_anew(self, dice: random.Random) -> None:
        self.site.sandbox.verify(dice.choice(self.people))

    def enter_code(self, _dice: random.Random) -> None:
        member = next(self.members, None)
        if member is None:
            return
        code = self.site.sandbox.connect_code(self.site.sandbox.create_person())
        with Browser(self.site) as browser:
            browser.sign_in_locally(f"member-{member}")
            browser.open("/identity/connect/")
            browser.submit(holding="connect_code", connect_code=code)
            expect(browser.open("/loans/"), "for the verified")

    def operate(self, dice: random.Random) -> None:
        with Browser(self.site) as browser:
            browser.sign_in_locally(OPERATOR)
            for page in PAGES:
                expect(browser.open(f"/admin/django_identity/{page}/"), "<title>")
            search = dice.choice(self.people).user_id[:8]
            expect(browser.open(f"/admin/django_identity/linkedidentity/?q={search}"), "<title>")

    def _sign_in(self, person: SandboxPerson) -> None:
        with Browser(self.site) as browser:
            expect(browser.sign_in(person, next_path="/adults/"), "for adults")
            expect(browser.open("/loans/"), "for the verified")
            expect(browser.open("/offer/"), "wine")
            expect(browser.open("/identity/account/"), "<title>")


def expect(page: httpx.Response, text: str) -> None:
    if page.status_code != 200 or text not in page.text:
        raise AssertionError(f"{page.status_code} at {page.url.path}: {page.text[-200:]!r}")


@dataclass
class Watch:
    """Samples of each process and of the database, taken while the load runs."""

    processes: dict[str, subprocess.Popen[bytes]]
    samples: dict[str, list[float]] = field(default_factory=dict)

    def take(self) -> None:
        for name, process in self.processes.items():
            for number, pid in enumerate([process.pid, *sorted(children_of(process.pid))]):
                who = f"{name}_{number}"
                self._note(f"{who}_megabytes", kilobytes_of(pid) / 1024)
                self._note(f"{who}_files", len(os.listdir(f"/proc/{pid}/fd")))
                self._note(f"{who}_threads", len(os.listdir(f"/proc/{pid}/task")))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            self._note("connections", cursor.fetchone()[0])
            for model in REWRITTEN:
                table = model._meta.db_table
                cursor.execute("SELECT pg_total_relation_size(%s)", [table])
                self._note(
                    f"{model._meta.model_name}_table_megabytes", cursor.fetchone()[0] / 2**20
                )

    def _note(self, name: str, value: float) -> None:
        self.samples.setdefault(name, []).append(value)

    def figures(self) -> dict[str, float]:
        """The medians of the last third."""
        return {name: median(third(taken, 2)) for name, taken in sorted(self.samples.items())}

    def growing(self) -> list[str]:
        grown = []
        for name, taken in sorted(self.samples.items()):
            typical = median if name.endswith("_megabytes") else min
            before, after = typical(third(taken, 1)), typical(third(taken, 2))
            if after > bound_of(name, before):
                grown.append(f"{name} grew from {before:.1f} to {after:.1f}")
        return grown


def bound_of(name: str, before: float) -> float:
    if name.endswith("_table_megabytes"):
        return before * TABLE_SHARE + TABLE_MEGABYTES
    if name.endswith("_megabytes"):
        return before * MEMORY_SHARE + MEMORY_MEGABYTES
    return before + (SPARE_FILES if name.endswith("_files") else SPARE)


def third(taken: list[float], which: int) -> list[float]:
    """The samples of the second (1) or last (2) third of the time."""
    size = max(1, len(taken) // 3)
    return taken[-size:] if which == 2 else taken[-2 * size : -size] or taken


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    return [int(number) for number in listed.split()]


def kilobytes_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0])


def run(*, seconds: int = SECONDS) -> Result:
    broker = os.environ.get("CELERY_BROKER_URL", "")
    if connection.vendor != "postgresql" or not broker.startswith("redis"):
        raise SystemExit("set DATABASE_URL to a PostgreSQL and CELERY_BROKER_URL to a Redis")
    with fresh_database(), TemporaryDirectory() as folder, running_sandbox() as sandbox:
        make_members()
        with site_at(sandbox, Path(folder)) as (site, processes):
            load = Load(site, time.monotonic() + seconds)
            watch = Watch(processes)
            walk(load, watch)
            dead = [name for name, each in processes.items() if each.poll() is not None]
        connections.close_all()
        said = [line for log in Path(folder).glob("*.log") for line in lines_of(log)]
    figures = {
        "seconds": float(seconds),
        **{f"{name}_steps": float(count) for name, count in sorted(load.done.items())},
        "errors": float(len(load.errors) + len(said)),
        **watch.figures(),
    }
    result = Result("soak", {}, figures)
    wrong = [*load.errors[:SHOWN], *said[:SHOWN], *(f"{name} ended" for name in dead)]
    if wrong := [*wrong, *watch.growing()]:
        raise SystemExit("\n".join([result.as_table(), "what must not be:", *wrong]))
    return result


def make_members() -> None:
    password = make_password(PASSWORD)
    User.objects.create_superuser(OPERATOR, password=PASSWORD)
    User.objects.bulk_create(
        User(username=f"member-{number}", password=password) for number in range(MEMBERS)
    )


def walk(load: Load, watch: Watch) -> None:
    with ThreadPoolExecutor(WALKERS) as pool:
        walking = [pool.submit(load.walk, number) for number in range(WALKERS)]
        for number in itertools.count(1):
            if time.monotonic() >= load.until:
                break
            time.sleep(PAUSE)
            fall_due()
            if number % VACUUM_EVERY == 0:
                vacuum()
            watch.take()
        for one in walking:
            one.result()


def fall_due() -> None:
    now = timezone.now()
    some = LinkedIdentity.objects.exclude(grant=None).order_by("?").values_list("pk", flat=True)
    LinkedIdentity.objects.filter(pk__in=list(some[:DUE_AT_ONCE])).update(refetch_due_at=now)


def vacuum() -> None:
    """As autovacuum does, which comes too seldom for a table to reach its size in a few minutes."""
    with connection.cursor() as cursor:
        for model in REWRITTEN:
            cursor.execute(f"VACUUM {model._meta.db_table}")


def lines_of(log: Path) -> list[str]:
    """The lines of warnings, errors and tracebacks."""
    wrong = ("WARNING", "ERROR", "CRITICAL", "Traceback")
    lines = log.read_text("utf-8", "replace").splitlines()
    return [f"{log.stem}: {line}"[:500] for line in lines if any(word in line for word in wrong)]


@contextmanager
def site_at(
    sandbox: RunningSandbox, folder: Path
) -> Iterator[tuple[AddressedSite, dict[str, subprocess.Popen[bytes]]]]:
    """The site under gunicorn and its worker."""
    site = Site(name="soaked")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environ = {
        **os.environ,
        "DATABASE_URL": address_of_the_database(),
        "DJANGO_SETTINGS_MODULE": site.settings,
        "SOAK_NAME": f"soak-{os.getpid()}",
        **registered(sandbox, address, webhook=f"{address}/identity/webhook/"),
    }
    commands = {
        "web": ["gunicorn", "--workers", "2", "--threads", "4", "--no-control-socket",
                "--log-level", "warning", "--bind", f"127.0.0.1:{port}", "tests.sites.soaked.wsgi"],
        "worker": ["celery", "--quiet", "-A", "tests.sites.soaked.worker", "worker", "--beat",
                   "--concurrency", "2", "--schedule", str(folder / "beat"),
                   "--loglevel", "WARNING"],
    }  # fmt: skip
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(running(name, command, environ, folder))
            for name, command in commands.items()
        }
        wait_until_it_answers(processes["web"], port, PATIENCE)
        yield (
            AddressedSite(site, address, sandbox, environ["SITE_CLIENT_ID"], port, environ),
            processes,
        )


@contextmanager
def running(
    name: str, command: list[str], environ: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=environ, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def address_of_the_database() -> str:
    scheme, _, rest = os.environ["DATABASE_URL"].partition("://")
    place = rest.partition("/")[0]
    return f"{scheme}://{place}/{connection.settings_dict['NAME']}"
