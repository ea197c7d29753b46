"""Minutes of mixed load on a site under gunicorn: no error, and nothing that grows.

PostgreSQL (``DATABASE_URL``) and Redis (``CELERY_BROKER_URL``). The sandbox, two gunicorn processes
of four threads, a Celery worker of two processes and beat are processes of their own. Four people
at a time sign up and in through the sandbox, open gated pages, enter Connect codes, are verified
anew (a webhook and a re-fetch), or are operators in the admin; every few seconds some identities
fall due. An unexpected page, a line in a log, or a process or number of connections that grows
from the second third of the time to the last ends the benchmark with an error.
"""

from __future__ import annotations

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

from django_identity.models import LinkedIdentity
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson, running_sandbox
from tests.benchmarks.harness import Figures, fresh_database
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

SECONDS = int(os.environ.get("SECONDS", "300"))
WALKERS = 4
MEMBERS = 400
DUE_AT_ONCE = 20
PAUSE, PATIENCE = 2.0, 120.0
# What an interpreter that is not leaking still varies by.
SHARE, SPARE = 1.05, 2.0
PAGES = ("linkedidentity", "webhookevent", "erasurereceipt", "linkedidentity/overview")
WRONG = ("WARNING", "ERROR", "CRITICAL", "Traceback")
Processes = dict[str, subprocess.Popen[bytes]]


@dataclass
class Load:
    """What the people of the benchmark do, each step for itself, until ``until``."""

    site: RunningSite
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
            self._take(dice.choices(list(steps), list(steps.values()))[0], dice)

    def _take(self, step: Callable[[random.Random], None], dice: random.Random) -> None:
        try:
            step(dice)
        except Exception as error:  # noqa: BLE001  whatever it is, the benchmark reports it
            self.errors.append(f"{step.__name__}: {type(error).__name__} {error}"[:500])
        self.done[step.__name__] += 1

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
        search = f"linkedidentity/?q={dice.choice(self.people).user_id[:8]}"
        with Browser(self.site) as browser:
            browser.sign_in_locally(OPERATOR)
            for page in (*(f"{page}/" for page in PAGES), search):
                expect(browser.open(f"/admin/django_identity/{page}"), "<title>")

    def _sign_in(self, person: SandboxPerson) -> None:
        with Browser(self.site) as browser:
            expect(browser.sign_in(person, next_path="/adults/"), "for adults")
            expect(browser.open("/loans/"), "for the verified")
            expect(browser.open("/identity/account/"), "<title>")


def expect(page: httpx.Response, text: str) -> None:
    if page.status_code != 200 or text not in page.text:
        raise AssertionError(f"{page.status_code} at {page.url.path}: {page.text[-200:]!r}")


def run() -> Figures:
    with fresh_database(), TemporaryDirectory() as folder, running_sandbox() as sandbox:
        make_members()
        with site_at(sandbox, Path(folder)) as (site, processes):
            load = Load(site, time.monotonic() + SECONDS)
            samples = walk(load, processes)
            wrong = [f"{name} ended" for name, each in processes.items() if each.poll() is not None]
        connections.close_all()
        said = [
            f"{log.stem}: {line}"
            for log in Path(folder).glob("*.log")
            for line in log.read_text("utf-8", "replace").splitlines()
            if any(word in line for word in WRONG)
        ]
    wrong += [*load.errors[:10], *said[:10], *growing(samples)]
    if wrong:
        raise SystemExit("\n".join(["what must not be:", *wrong]))
    steps = {f"{name}_steps": float(count) for name, count in sorted(load.done.items())}
    return {**steps, **{name: median(taken) for name, taken in sorted(samples.items())}}


def make_members() -> None:
    password = make_password(PASSWORD)
    User.objects.create_superuser(OPERATOR, password=PASSWORD)
    User.objects.bulk_create(
        User(username=f"member-{number}", password=password) for number in range(MEMBERS)
    )


def walk(load: Load, processes: Processes) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {}
    with ThreadPoolExecutor(WALKERS) as pool:
        walking = [pool.submit(load.walk, number) for number in range(WALKERS)]
        while time.monotonic() < load.until:
            time.sleep(PAUSE)
            fall_due()
            for name, value in sampled(processes):
                samples.setdefault(name, []).append(value)
        for one in walking:
            one.result()
    return samples


def fall_due() -> None:
    some = LinkedIdentity.objects.exclude(grant=None).order_by("?").values_list("pk", flat=True)
    due = LinkedIdentity.objects.filter(pk__in=list(some[:DUE_AT_ONCE]))
    due.update(refetch_due_at=timezone.now())


def sampled(processes: Processes) -> Iterator[tuple[str, float]]:
    """The memory and the open files of each process, and the connections to the database."""
    for name, process in processes.items():
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii")
        for number, pid in enumerate([str(process.pid), *sorted(children.split())]):
            status = Path(f"/proc/{pid}/status").read_text("ascii")
            kilobytes = int(status.partition("VmRSS:")[2].split()[0])
            yield f"{name}_{number}_megabytes", kilobytes / 1024
            yield f"{name}_{number}_files", float(len(os.listdir(f"/proc/{pid}/fd")))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        yield "connections", float(cursor.fetchone()[0])


def growing(samples: dict[str, list[float]]) -> list[str]:
    """Memory by its medians; what varies with the work in hand by the least."""
    grown = []
    for name, taken in sorted(samples.items()):
        size = max(1, len(taken) // 3)
        typical = median if name.endswith("_megabytes") else min
        before, after = typical(taken[-2 * size : -size] or taken), typical(taken[-size:])
        if after > before * SHARE + SPARE:
            grown.append(f"{name} grew from {before:.1f} to {after:.1f}")
    return grown


@contextmanager
def site_at(sandbox: RunningSandbox, folder: Path) -> Iterator[tuple[RunningSite, Processes]]:
    """The site under gunicorn and its worker."""
    site, port = Site(name="soaked"), free_port()
    address = f"http://127.0.0.1:{port}"
    server = os.environ["DATABASE_URL"].rpartition("/")[0]
    environ = {
        **os.environ,
        "DATABASE_URL": f"{server}/{connection.settings_dict['NAME']}",
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
        processes = {}
        for name, command in commands.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, env=environ, stdout=log, stderr=log
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            processes[name] = process
        wait_until_it_answers(processes["web"], port, PATIENCE)
        yield (
            RunningSite(site, address, sandbox, environ["SITE_CLIENT_ID"], port, environ),
            processes,
        )
