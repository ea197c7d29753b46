"""The KYC level of an identity: when it is read anew, and what an answer changes.

A level counts only for a time after the service last vouched for it (``kyc_checked_at``), so it is
read anew once a day, and at once after an event that changed it or put it in doubt.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from django_identity.conf import Application
from django_identity.lifecycle.upkeep import replacement
from django_identity.models import Consent, LinkedIdentity
from django_identity.service.messages import KycStatus

KYC_SCOPE = "kyc:read"
CHECKED_EVERY = timedelta(hours=24)
# The pace of an identity that has no claims to read: three quarters of it are a day.
LONGEST_LIFE = timedelta(hours=32)


def may_check(identity: LinkedIdentity) -> bool:
    """Whether the service answers about this person's KYC: consent stands and covers it."""
    return identity.consent == Consent.GRANTED and KYC_SCOPE in identity.scopes


def is_due(application: Application, identity: LinkedIdentity) -> bool:
    """Whether the level is to be read at this re-fetch."""
    checked_at = identity.kyc_checked_at
    if not may_check(identity):
        return False
    if checked_at is None or checked_at <= identity.kyc_changed_at:
        # An event put it in doubt, or changed it: the service itself has the last word.
        return True
    every = min(CHECKED_EVERY, application.kyc_holds / 2)
    return checked_at <= timezone.now() - every


def next_refetch(
    application: Application, identity: LinkedIdentity, *, claims_due_at: datetime | None
) -> datetime | None:
    """When the next re-fetch is due; None if there is nothing to fetch.

    With claims the level is read when those are, as long as it lasts until then.
    """
    if not may_check(identity):
        return claims_due_at
    life = application.kyc_holds if claims_due_at else min(application.kyc_holds, LONGEST_LIFE)
    checked_at = identity.kyc_checked_at or timezone.now()
    level_due_at = replacement.due_at(identity, now=checked_at, ends_at=checked_at + life)
    return min(claims_due_at or level_due_at, level_due_at)


def columns_of(answer: KycStatus, *, checked_at: datetime) -> dict[str, Any]:
    """What the service's answer changes of the identity. ``checked_at``: when it was asked."""
    return {
        "kyc_level": answer.kyc_level,
        "kyc_status": answer.status,
        "kyc_provider": answer.provider,
        "kyc_verified_at": answer.verified_at,
        "kyc_checked_at": checked_at,
    }
