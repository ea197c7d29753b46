"""When to re-read the KYC level of an identity, and what an answer changes.

A level counts only for a limited time after the service last confirmed it (``kyc_checked_at``).
Therefore it is re-read once a day, and at once after an event that changes or questions it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from django_identity.conf import Application
from django_identity.lifecycle.upkeep import replacement
from django_identity.models import Consent, LinkedIdentity
from django_identity.service.messages import KycStatus

KYC_SCOPE = "kyc:read"
CHECKED_EVERY = timedelta(hours=24)
# For an identity without claims: three quarters of this time are one day.
LONGEST_LIFE = timedelta(hours=32)


#: Nothing is known of the person's KYC.
NO_LEVEL: Mapping[str, Any] = {
    "kyc_level": "",
    "kyc_status": "",
    "kyc_provider": "",
    "kyc_verified_at": None,
    "kyc_checked_at": None,
}


def may_check(identity: LinkedIdentity) -> bool:
    """Whether the person's consent is granted and covers KYC."""
    return identity.consent == Consent.GRANTED and KYC_SCOPE in identity.scopes


def is_due(application: Application, identity: LinkedIdentity) -> bool:
    """Whether this re-fetch must read the level."""
    checked_at = identity.kyc_checked_at
    if not may_check(identity):
        return False
    if checked_at is None or identity.kyc_rank:
        # An event changed or questioned the level, so ask the service.
        return True
    every = min(CHECKED_EVERY, application.kyc_holds / 2)
    return checked_at <= timezone.now() - every


def next_refetch(
    application: Application, identity: LinkedIdentity, *, claims_due_at: datetime | None
) -> datetime | None:
    """When the next re-fetch is due, or None if there is nothing to fetch.

    With claims, the level is read together with them, if it lasts until then.
    """
    if not may_check(identity):
        return claims_due_at
    life = application.kyc_holds if claims_due_at else min(application.kyc_holds, LONGEST_LIFE)
    checked_at = identity.kyc_checked_at or timezone.now()
    level_due_at = replacement.due_at(identity, now=checked_at, ends_at=checked_at + life)
    return min(claims_due_at or level_due_at, level_due_at)


def columns_of(answer: KycStatus, *, checked_at: datetime) -> dict[str, Any]:
    """The columns that the answer changes. ``checked_at``: when the service was asked."""
    return {
        "kyc_level": answer.kyc_level,
        "kyc_status": answer.status,
        "kyc_provider": answer.provider,
        "kyc_verified_at": answer.verified_at,
        "kyc_checked_at": checked_at,
    }
