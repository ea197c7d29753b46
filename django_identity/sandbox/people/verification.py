"""Identity verification by test bank verification number (spec: Limits, sandbox rules).

Beside it a person can add proof of address, which an application's Connect policy may ask for.
"""

from enum import StrEnum

from django.db import transaction

from django_identity.sandbox import claims, clock
from django_identity.sandbox.events.event import EventType, announce
from django_identity.sandbox.models import KycStatus, User

BVN_VERIFIED = "22222222222"
BVN_NAME_MISMATCH = "11111111111"


class Outcome(StrEnum):
    """What the KYC vendor says about a bank verification number."""

    VERIFIED = "verified"
    NAME_MISMATCH = "name_mismatch"
    NOT_FOUND = "not_found"
    PROVIDER_UNAVAILABLE = "provider_unavailable"


OUTCOMES = {
    BVN_VERIFIED: Outcome.VERIFIED,
    BVN_NAME_MISMATCH: Outcome.NAME_MISMATCH,
    "33333333333": Outcome.NOT_FOUND,
    "00000000000": Outcome.PROVIDER_UNAVAILABLE,
}


@transaction.atomic
def verify(user: User, bvn: str) -> Outcome:
    """Verify ``user`` with ``bvn``, record the outcome and announce it.

    Whatever is no test number is not found. A rejection invalidates an earlier verification, so
    its claims are revoked. An unavailable provider changes nothing.
    """
    outcome = OUTCOMES.get(bvn, Outcome.NOT_FOUND)
    if outcome is Outcome.VERIFIED:
        _record(user, KycStatus.VERIFIED)
        _announce(EventType.KYC_VERIFIED, user)
        claims.issue_all(user)
    elif outcome is not Outcome.PROVIDER_UNAVAILABLE:
        _record(user, KycStatus.REJECTED, outcome)
        _announce(EventType.KYC_REJECTED, user)
        claims.revoke_all(user)
    return outcome


@transaction.atomic
def invalidate(user: User) -> None:
    """Take the verification of ``user`` back; each of its claims is revoked, and that announced."""
    _record(user, KycStatus.UNVERIFIED)
    claims.revoke_all(user)


def prove_address(user: User, *, proved: bool = True) -> None:
    """Record that ``user`` has proved where they live, or take that back."""
    user.address_proved_at = clock.now() if proved else None
    user.save(update_fields=["address_proved_at"])


def _record(user: User, status: KycStatus, rejected_for: str = "") -> None:
    """Store where ``user`` stands now."""
    user.kyc_status = status
    user.rejected_for = rejected_for
    user.kyc_verified_at = clock.now() if user.is_verified else None
    user.save(update_fields=["kyc_status", "kyc_verified_at", "rejected_for"])


def _announce(kind: EventType, user: User) -> None:
    """Announce the outcome (spec: Events, payload of kyc.verified)."""
    announce(
        kind,
        user,
        kyc_level=str(user.kyc_level),
        status=str(user.kyc_status),
        provider=claims.KYC_VENDOR,
    )
