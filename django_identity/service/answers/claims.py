"""The answers about claims. A listed claim is not proven: the credential proves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_identity.exceptions import MalformedAnswer, shaped_code
from django_identity.service.answers.members import (
    LONGEST_SUBJECT,
    Members,
    moment_of,
    required_text,
    subject_of,
    text_of,
)

LONGEST_CREDENTIAL = 128 * 1024
LONGEST_NAME = 128
MOST_CLAIMS = 200


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim in the list of the response, which does not prove it."""

    claim_type: str
    provider: str
    revoked: bool
    proof_hash: str
    expires_at: datetime | None

    @classmethod
    def parse(cls, body: Any) -> ListedClaim:
        if not isinstance(body, dict):
            raise MalformedAnswer("a claim is not an object", endpoint="claims")
        revoked = body.get("revoked")
        if not isinstance(revoked, bool | None):
            raise MalformedAnswer("revoked is not a boolean", endpoint="claims")
        return cls(
            claim_type=required_text(body, "claim_type", "claims", longest=LONGEST_NAME),
            provider=text_of(body, "provider", "claims", longest=LONGEST_NAME),
            revoked=revoked is True,
            proof_hash=text_of(body, "proof_hash", "claims", longest=LONGEST_SUBJECT),
            expires_at=moment_of(body, "expires_at", "claims"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ClaimsAnswer:
    user_id: str
    claims: tuple[ListedClaim, ...]
    credential: str | None

    @classmethod
    def parse(cls, body: Members) -> ClaimsAnswer:
        listed, credential = body.get("claims"), body.get("credential")
        if not isinstance(listed, list) or len(listed) > MOST_CLAIMS:
            raise MalformedAnswer("claims is not a list of usable length", endpoint="claims")
        if credential is not None and not (
            isinstance(credential, str) and len(credential) <= LONGEST_CREDENTIAL
        ):
            raise MalformedAnswer("credential is not a usable text", endpoint="claims")
        if body.get("credential_format") not in (None, "dc+sd-jwt"):
            raise MalformedAnswer("an unknown credential_format", endpoint="claims")
        return cls(
            user_id=subject_of(body.get("user_id"), "claims"),
            claims=tuple(ListedClaim.parse(claim) for claim in listed),
            credential=credential,
        )


@dataclass(frozen=True, slots=True)
class ClaimsVerdict:
    """The service's verdict on a credential. ``reason``: its code for why it is not valid.

    The specification does not show this answer. These members are the sandbox's.
    """

    valid: bool
    reason: str
    claims: Members = field(repr=False)

    @classmethod
    def parse(cls, body: Members) -> ClaimsVerdict:
        valid, claims = body.get("valid"), body.get("claims")
        if not isinstance(valid, bool):
            raise MalformedAnswer("valid is not a boolean", endpoint="verify_claims")
        if not isinstance(claims, dict | None):
            raise MalformedAnswer("claims is not an object", endpoint="verify_claims")
        return cls(valid, shaped_code(body.get("reason")), claims or {})
