"""What a check finds: a level, the cause, and the remedy."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

SILENCE = 3.0


class Level(StrEnum):
    """The severity of a finding. An operator must fix a problem."""

    FINE = "ok"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``check`` is its stable name; the two sentences are for people."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def report_count(
    check: str, level: Level, rows: QuerySet[Any], message: str, remedy: str = ""
) -> Iterator[Finding]:
    """A finding if there are ``rows``. Their number stands in front of ``message``."""
    if count := rows.count():
        yield Finding(check, level, f"{count} {message}", remedy)


def failure_of(work: Callable[[], object]) -> str:
    """Why ``work`` fails: its exception's class, ``silent`` after three seconds, or empty."""
    failures = ["silent"]

    def try_it() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  any client's own errors
            failures[0] = type(error).__name__
        else:
            failures[0] = ""

    # A daemon thread: a server that never answers must not keep the command from ending.
    attempt = threading.Thread(target=try_it, daemon=True)
    attempt.start()
    attempt.join(SILENCE)
    return failures[0]
