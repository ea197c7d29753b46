"""Identity verification by test bank verification number (spec: Limits, sandbox rules).

Beside it a person can add proof of address, which an application's Connect policy may ask for.
"""

import re
from enum import StrEnum
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.claims import claims
from django_identity.sandbox.events.announcing import announce
from django_identity.sandbox.events.event import EventType
from django_identity.sandbox.instruments import clock
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


class AddressDocument(models.TextChoices):
    """What can prove an address."""

    UTILITY_BILL = "utility_bill", _("Utility bill")
    BANK_STATEMENT = "bank_statement", _("Bank statement")
    TAX_NOTICE = "tax_notice", _("Tax notice")


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

    The outcome is announced. A rejection invalidates an earlier verification, so its claims are
    revoked. An unavailable provider changes nothing.

    Raises:
        InvalidBvn: nothing was changed.
    """
    outcome = outcome_of(bvn)
    if outcome is Outcome.PROVIDER_UNAVAILABLE:
        return outcome
    if outcome is Outcome.VERIFIED:
        _record(user, KycStatus.VERIFIED)
        _announce(EventType.KYC_VERIFIED, user)
        claims.issue_all(user)
    else:
        _record(user, KycStatus.REJECTED)
        _announce(EventType.KYC_REJECTED, user)
        claims.revoke_all(user)
    return outcome


@transaction.atomic
def invalidate(user: User) -> None:
    """Take the verification of ``user`` back; each of its claims is revoked, and that announced."""
    _record(user, KycStatus.UNVERIFIED)
    claims.revoke_all(user)


def kyc_status(user: User) -> dict[str, Any]:
    """Return whether, when and by whom ``user`` was verified (spec: KYC status)."""
    verified_at = user.kyc_verified_at
    return {
        "kyc_level": user.kyc_level,
        "status": user.kyc_status,
        "verified_at": clock.timestamp(verified_at) if verified_at else None,
        "provider": None if user.kyc_status == KycStatus.UNVERIFIED else claims.KYC_VENDOR,
    }


def prove_address(user: User, *, proved: bool = True) -> None:
    """Record that ``user`` has proved where they live, or take that back."""
    user.address_proved_at = clock.now() if proved else None
    user.save(update_fields=["address_proved_at"])


def _record(user: User, status: KycStatus) -> None:
    """Store where ``user`` stands now."""
    user.kyc_status = status
    user.kyc_verified_at = clock.now() if status is KycStatus.VERIFIED else None
    user.save(update_fields=["kyc_status", "kyc_verified_at"])


def _announce(kind: EventType, user: User) -> None:
    """Announce the outcome (spec: Events, payload of kyc.verified)."""
    announce(
        kind,
        user,
        kyc_level=str(user.kyc_level),
        status=str(user.kyc_status),
        provider=claims.KYC_VENDOR,
    )
