"""The service's answer to a Connect request as a frozen value, parsed and bounded once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django_identity.exceptions import MalformedAnswer, SubjectMismatch
from django_identity.service.answers.members import (
    LONGEST_SUBJECT,
    Members,
    moment_of,
    required_text,
    subject_of,
)
from django_identity.service.answers.people import KycStatus, Profile

LONGEST_SIGNATURE = 8192
PROFILE_SCOPE = "profile:basic"
KYC_SCOPE = "kyc:status"


@dataclass(frozen=True, slots=True, repr=False)
class ConnectAnswer:
    """The service's data for a Connect code, limited to the requested scopes.

    ``received`` is the complete ``data``, for a policy that can check the ``signature`` (the
    service does not publish how the signature is made). It is not stored.
    """

    request_id: str
    user_id: str
    profile: Profile
    kyc: KycStatus | None
    issued_at: datetime
    signature: str
    received: Mapping[str, Any]

    @classmethod
    def parse(cls, body: Members, *, asked: Collection[str]) -> ConnectAnswer:
        """Parse the ``data`` of the answer. Raises ``MalformedAnswer``; ``SubjectMismatch``."""
        if body.get("status") != "approved":
            raise MalformedAnswer("status is not approved", endpoint="connect")
        subject, kyc = subject_of(body.get("user_id"), "connect"), None
        profile = Profile(id=subject)
        if PROFILE_SCOPE in asked:
            profile = Profile.parse({"id": subject, **_shared(body, "profile")})
        if profile.id != subject:
            raise SubjectMismatch("about another subject", endpoint="connect")
        if KYC_SCOPE in asked:
            kyc = KycStatus.parse(_shared(body, "kyc"))
            if not kyc.status:
                raise MalformedAnswer("data.kyc without a status", endpoint="connect")
        issued_at = moment_of(body, "issued_at", "connect")
        if issued_at is None:
            raise MalformedAnswer("no issued_at", endpoint="connect")
        return cls(
            request_id=required_text(body, "request_id", "connect", longest=LONGEST_SUBJECT),
            user_id=subject,
            profile=profile,
            kyc=kyc,
            issued_at=issued_at,
            signature=required_text(body, "signature", "connect", longest=LONGEST_SIGNATURE),
            received=MappingProxyType(body),
        )


def _shared(body: Members, name: str) -> Members:
    """The member ``profile`` or ``kyc``, in the result's member ``data`` or in the result itself.

    The spec's "data.profile" can mean both.
    """
    within = body.get("data", {})
    places = [place for place in (within, body) if isinstance(place, dict) and name in place]
    if len(places) != 1 or not isinstance(places[0][name], dict):
        raise MalformedAnswer(f"no usable data.{name}", endpoint="connect")
    shared: Members = places[0][name]
    return shared
