"""The result of every check of a verification, for people.

The trace repeats no check, so it cannot disagree with the verifier: each reason belongs to exactly
one of ``CHECKS``, which are in the order of their run, so the reason tells which checks passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django_identity.credentials.reasons import CHECKS, RejectionReason
from django_identity.credentials.verified import VerifiedCredential
from django_identity.exceptions import CredentialRejected

_R = RejectionReason

EXPLANATIONS: Final[Mapping[RejectionReason, str]] = {
    _R.LIMITS: "too long, a header too long, or too many disclosures",
    _R.FORMAT_CHARSET: "a character that no credential contains",
    _R.FORMAT_TILDE: 'does not end with "~": it is cut off, or has a key-binding part',
    _R.FORMAT_SEGMENTS: "the signed token is not three non-empty segments",
    _R.FORMAT_DISCLOSURE: 'a disclosure is empty or has a "."',
    _R.ENCODING: "a part is not canonical base64url",
    _R.HEADER_JSON: "the header is not one strict JSON object",
    _R.HEADER_ALG: "the algorithm is not ES256",
    _R.HEADER_TYP: "the type is not dc+sd-jwt",
    _R.HEADER_CRIT: "it demands critical extensions, of which none is understood",
    _R.HEADER_KEY_SOURCE: "it brings its own key or points to one",
    _R.HEADER_KID: "the key is not named, or not by a string",
    _R.KEY: "the key set has no usable key of that name",
    _R.SIGNATURE: "not the signature of this text by that key",
    _R.PAYLOAD_JSON: "the payload is not one strict JSON object",
    _R.PAYLOAD_NESTED: "there are digests below the payload's top level",
    _R.PAYLOAD_ISS: "another issuer than the application's API origin",
    _R.PAYLOAD_AUD: "meant for another application",
    _R.PAYLOAD_ENVIRONMENT: "live for test, or test for live",
    _R.PAYLOAD_SUB: "no subject, an unusable one, or another than the one asked for",
    _R.PAYLOAD_EXP: "no expiry, or one that is no date",
    _R.PAYLOAD_EXPIRED: "it has expired",
    _R.PAYLOAD_NBF: "not valid yet, or its nbf is no date",
    _R.PAYLOAD_IAT: "issued in the future, or its iat is no date",
    _R.PAYLOAD_SD: "the digests are not a list of strings",
    _R.PAYLOAD_SD_REPEAT: "a digest is listed twice",
    _R.PAYLOAD_SD_ALG: "the digests are by another hash than SHA-256",
    _R.DISCLOSURE_REPEAT: "a disclosure was sent twice",
    _R.DISCLOSURE_UNLISTED: "the digest of a disclosure is not in the signed list",
    _R.DISCLOSURE_JSON: "a disclosure is not strict JSON",
    _R.DISCLOSURE_ARRAY_ELEMENT: "a disclosure of two elements hides an array element",
    _R.DISCLOSURE_SHAPE: "a disclosure is not an array of salt, name and value",
    _R.DISCLOSURE_NESTED: "there are digests inside a disclosed value",
    _R.DISCLOSURE_NAME: "a disclosure has a name that may not be disclosed",
    _R.DISCLOSURE_COLLISION: "a disclosure has a name that is taken already",
}
"""What each reason says, for operators; the reason itself is what is stable."""


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
            return [f"rejected: {self.reason}: {EXPLANATIONS[self.reason]}"]
        return ["verified:", *_proofs(self.proven)]


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


def _proofs(proven: VerifiedCredential | None) -> Iterator[str]:
    if proven is None:
        return
    facts: dict[str, object] = {
        "subject": proven.subject,
        "environment": proven.environment,
        "key": proven.kid,
        "issued": _spelt(proven.issued_at),
        "expires": _spelt(proven.expires_at),
    }
    facts |= {f"claim {json.dumps(name)}": value for name, value in proven.claims_as_json().items()}
    for label, value in facts.items():
        yield f"  {label}: {json.dumps(value)}"


def _spelt(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
