"""What a check finds: a level, the cause, and the remedy."""

from dataclasses import dataclass
from enum import StrEnum


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
