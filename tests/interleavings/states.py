"""What counts as one state: the rows, the service, the clock, and what each process has learned."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

from django.db import connection

from tests.interleavings.processes import Process, Run
from tests.interleavings.world import text_of

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):(\d\d)")
#: Nothing in the package compares these moments of a row that it reads.
UNREAD = ("created_at", "date_joined", "requested_at", "handled_at")
TABLES = (
    "auth_user",
    "django_identity_linkedidentity",
    "django_identity_tokengrant",
    "django_identity_storedclaim",
    "django_identity_webhookevent",
    "django_identity_erasurereceipt",
    "django_identity_authorizationrequest",
    "django_identity_connectredemption",
)


class Text(NamedTuple):
    """A text as a digest without its moments, and the moments: minutes and seconds."""

    digest: bytes
    moments: tuple[tuple[str, str], ...]


@cache
def text(content: str, horizon: str = "") -> Text:
    """Of moments beyond the ``horizon`` only the minute counts: no path comes near them."""
    moments = [
        (minute, second if minute < horizon else "") for minute, second in MOMENT.findall(content)
    ]
    without = MOMENT.sub("", content)
    return Text(blake2b(without.encode(), digest_size=16).digest(), tuple(moments))


def horizon_of(run: Run) -> str:
    return text_of(run.clock.now() + timedelta(minutes=15))


NOTHING = text("")


@dataclass(frozen=True)
class Local:
    """A process in a state. How it ended makes no difference: what it did is in the rows."""

    name: str
    at: str = ""
    learned: Text = NOTHING
    waits: bool = False
    has_begun: bool = True
    is_over: bool = False

    @classmethod
    def of(cls, process: Process, horizon: str) -> "Local":
        if process.is_over:
            return cls(process.name, process.fault, is_over=True)
        learned = text("\n".join([*process.learned, *process.kept_moments()]), horizon)
        return cls(process.name, process.at, learned, process.waits, process.has_begun)


@dataclass(frozen=True)
class Choice:
    """The next step: the process of that number goes on, or ``dies``."""

    number: int
    dies: bool = False


@dataclass(frozen=True)
class State:
    """``shared``: what all processes may read. ``deaths``: how many processes may die yet."""

    shared: Text
    locals: tuple[Local, ...]
    deaths: int

    @classmethod
    def of(cls, run: Run, *, deaths: int) -> "State":
        horizon = horizon_of(run)
        shared = text(repr((f"{run.clock.now()}", _rows(), run.service, run.facts)), horizon)
        return cls(shared, tuple(Local.of(each, horizon) for each in run.processes), deaths)

    @cached_property
    def key(self) -> bytes:
        """Equal for two states that differ in nothing but the seconds between two moments.

        Every time-out of the package is a number of minutes, and a path has fewer steps than a
        minute has seconds. So two moments compare as their minutes do, and else as their order.
        """
        texts = [self.shared, *(local.learned for local in self.locals)]
        seconds = sorted({second for each in texts for _minute, second in each.moments})
        ranks = {second: rank for rank, second in enumerate(seconds)}
        moments = [(minute, ranks[second]) for each in texts for minute, second in each.moments]
        places = [
            (each.at, each.waits, each.has_begun, each.is_over, each.learned.digest)
            for each in self.locals
        ]
        parts = repr((self.shared.digest, places, moments, self.deaths))
        return blake2b(parts.encode(), digest_size=16).digest()

    def choices(self) -> Iterator[Choice]:
        """What can happen next: a step of each process, or the end of one that has begun."""
        alive = [number for number, each in enumerate(self.locals) if not each.is_over]
        ready = [number for number in alive if not self.locals[number].waits]
        for number in ready or alive:
            yield Choice(number)
        if self.deaths:
            for number in alive:
                if self.locals[number].has_begun:
                    yield Choice(number, dies=True)

    def after(self, number: int, local: Local, shared: Text) -> "State":
        """The state after a step of one process. It wakes those that wait."""
        others = [replace(each, waits=False) if each.waits else each for each in self.locals]
        others[number] = local
        return State(shared, tuple(others), self.deaths)

    def after_death(self, number: int) -> "State":
        others = list(self.locals)
        others[number] = Local(others[number].name, is_over=True)
        return State(self.shared, tuple(others), self.deaths - 1)


def _rows() -> list[list[str]]:
    cursor = connection.connection.cursor()
    return [
        [compared(cursor, row) for row in cursor.execute(f"SELECT * FROM {table} ORDER BY id")]
        for table in TABLES
    ]


def compared(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> str:
    """The values of a row, but for those that nothing compares."""
    names = [column[0] for column in cursor.description]
    pairs = zip(names, values, strict=True)
    return str([f"{value}" for name, value in pairs if name not in UNREAD])
