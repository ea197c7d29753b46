"""What a check finds: a level, the cause, and the remedy."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

#: A larger number of rows tells an operator nothing more, and would take longer to count.
MOST_COUNTED = 100_000


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


def number_of(rows: QuerySet[Any]) -> int:
    """How many they are, at most ``MOST_COUNTED``."""
    return rows[:MOST_COUNTED].count()
