"""The types of event that the service sends, by the names of the spec."""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """The event types of the spec. An event may be of another type; it is stored and ignored."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


KYC_TYPES = frozenset[str]({EventType.KYC_VERIFIED, EventType.KYC_REJECTED})
CLAIM_TYPES = frozenset[str]({EventType.CLAIM_ISSUED, EventType.CLAIM_REVOKED})
#: Consent ends with these, whatever else they ask for.
WITHDRAWALS = frozenset[str]({EventType.CONSENT_REVOKED, EventType.DATA_DELETION_REQUESTED})
KNOWN_TYPES = frozenset[str](EventType)
# What the service's policy text calls two of them.
_OTHER_NAMES: dict[str, str] = {
    "consent_revoked": EventType.CONSENT_REVOKED,
    "user_deleted": EventType.DATA_DELETION_REQUESTED,
}


def canonical(event_type: str) -> str:
    """The spec's name of a type that may go by the name of the policy text."""
    return str(_OTHER_NAMES.get(event_type, event_type))
