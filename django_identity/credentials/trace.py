"""The result of every check of a verification, for people.

The trace repeats no check, so it cannot disagree with the verifier: each reason belongs to exactly
one of ``CHECKS``, which are in the order of their run, so the reason tells which checks passed.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from django_identity.credentials.reasons import CHECKS, RejectionReason
from django_identity.credentials.verified import VerifiedCredential
from django_identity.exceptions import CredentialRejected


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "FAILED"
    NOT_MADE = "not made"


@dataclass(frozen=True, slots=True)
class Step:
    """One check with its title and its result."""

    title: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Trace:
    """One verification: its steps in order, and the proven claims or the rejection's reason."""

    steps: tuple[Step, ...]
    proven: VerifiedCredential | None
    reason: RejectionReason | None

    def lines(self) -> list[str]:
        """The trace as text: every check, then the proven claims or the reason.

        It never shows the credential. The issuer's texts are written as ASCII JSON, so that no
        control character reaches a terminal.
        """
        checks = [f"  {step.outcome:<8}  {step.title}" for step in self.steps]
        return [*checks, "", *self.conclusion()]

    def conclusion(self) -> list[str]:
        """The lines after the checks: the proven claims or the reason."""
        if self.reason is not None:
            return [f"rejected: {self.reason}: {self.reason.explanation}"]
        return ["verified:", *_proofs(self.proven)] if self.proven else []


def trace(verification: Callable[[], VerifiedCredential]) -> Trace:
    """Run ``verification``, a call of ``verify``, and record its result."""
    try:
        proven = verification()
    except CredentialRejected as rejected:
        return Trace(tuple(_steps(rejected.reason)), None, rejected.reason)
    return Trace(tuple(_steps(None)), proven, None)


def _steps(reason: RejectionReason | None) -> Iterator[Step]:
    outcome = Outcome.PASSED
    for check in CHECKS:
        if reason in check.reasons:
            yield Step(check.title, Outcome.FAILED)
            outcome = Outcome.NOT_MADE
        else:
            yield Step(check.title, outcome)


def _proofs(proven: VerifiedCredential) -> Iterator[str]:
    facts: dict[str, object] = {
        "subject": proven.subject,
        "environment": proven.environment,
        "key": proven.kid,
        "issued": proven.issued_at and proven.issued_at.isoformat(),
        "expires": proven.expires_at.isoformat(),
    }
    facts |= {f"claim {json.dumps(name)}": value for name, value in proven.claims_as_json().items()}
    for label, value in facts.items():
        yield f"  {label}: {json.dumps(value)}"
