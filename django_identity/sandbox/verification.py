"""Identity verification by test bank verification number (spec: Limits, sandbox rules)."""

import re
from enum import StrEnum

from django.db import transaction

from django_identity.sandbox import claims, clock
from django_identity.sandbox.models import KycStatus, User

BVN_VERIFIED = "22222222222"
BVN_NAME_MISMATCH = "11111111111"
BVN_PROVIDER_UNAVAILABLE = "00000000000"
_BVN_SHAPE = re.compile(r"[0-9]{11}")


class Outcome(StrEnum):
    """What the KYC vendor says about a bank verification number."""

    VERIFIED = "verified"
    NAME_MISMATCH = "name_mismatch"
    NOT_FOUND = "not_found"
    PROVIDER_UNAVAILABLE = "provider_unavailable"


class InvalidBvn(ValueError):
    """Not eleven digits."""


def outcome_of(bvn: str) -> Outcome:
    """Return the fixed outcome of a test number.

    Raises:
        InvalidBvn: ``bvn`` is not eleven ASCII digits.
    """
    if not _BVN_SHAPE.fullmatch(bvn):
        raise InvalidBvn("A bank verification number has exactly 11 digits.")
    return {
        BVN_VERIFIED: Outcome.VERIFIED,
        BVN_NAME_MISMATCH: Outcome.NAME_MISMATCH,
        BVN_PROVIDER_UNAVAILABLE: Outcome.PROVIDER_UNAVAILABLE,
    }.get(bvn, Outcome.NOT_FOUND)


@transaction.atomic
def verify(user: User, bvn: str) -> Outcome:
    """Verify ``user`` with ``bvn`` and record the outcome.

    A rejection invalidates an earlier verification, so its claims are revoked. An unavailable
    provider changes nothing.

    Raises:
        InvalidBvn: nothing was changed.
    """
    outcome = outcome_of(bvn)
    if outcome is Outcome.PROVIDER_UNAVAILABLE:
        return outcome
    if outcome is Outcome.VERIFIED:
        user.kyc_status = KycStatus.VERIFIED
        user.kyc_verified_at = clock.now()
        claims.issue_all(user)
    else:
        user.kyc_status = KycStatus.REJECTED
        user.kyc_verified_at = None
        claims.revoke_all(user)
    user.save(update_fields=["kyc_status", "kyc_verified_at"])
    return outcome
