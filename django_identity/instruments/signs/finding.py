"""A finding: its severity, the cause, and the remedy."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding. An operator must fix a problem."""

    FINE = "ok"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True, slots=True)
class Finding:
    """``check`` is its stable name; the two sentences are for operators."""

    check: str
    level: Severity
    message: str
    remedy: str = ""


#: What one question finds.
Diagnosis = Iterator[Finding]


def fine(check: str, message: str) -> Finding:
    return Finding(check, Severity.FINE, message)


def warning(check: str, message: str, remedy: str = "") -> Finding:
    return Finding(check, Severity.WARNING, message, remedy)


def problem(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Severity.PROBLEM, message, remedy)
