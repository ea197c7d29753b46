"""What a check finds: a level, the cause, and the remedy."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from django_identity.models.querysets import MOST_COUNTED, number_of


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


#: What one check finds.
Diagnosis = Iterator[Finding]


def fine(check: str, message: str) -> Finding:
    return Finding(check, Level.FINE, message)


def warning(check: str, message: str, remedy: str = "") -> Finding:
    return Finding(check, Level.WARNING, message, remedy)


def problem(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Level.PROBLEM, message, remedy)


def counted(
    check: str,
    rows: QuerySet[Any],
    message: str,
    remedy: str,
    *,
    level: Level = Level.PROBLEM,
) -> Diagnosis:
    """A finding if there are ``rows``. The message begins with their number."""
    number = number_of(rows)
    if number:
        how_many = str(number)
        if number == MOST_COUNTED:
            how_many += " or more"
        yield Finding(check, level, f"{how_many} {message}", remedy)
