"""The KYC level: which of two statements counts, and until when the level does.

Between two events the newer statement counts, and a rejection wins at equal times, so the result is
the same in every order. Against the site's own answer a withdrawal counts that is hardly older.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django_identity import conf, signals
from django_identity.handlers import KYC_TYPES, EventType
from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from django_identity.service.answers import KycStatus
from django_identity.service.webhooks import VERIFIED, NamedClaim

#: Time-stamps with a smaller difference do not tell which came first: then a withdrawal wins.
CLOCK_SKEW = timedelta(minutes=5)
#: The scope of a sign-in, with which upkeep re-reads the level.
SCOPE = "kyc:read"
#: What a sign-in and what a Connect code call the scope that covers KYC.
SCOPES = frozenset({SCOPE, "kyc:status"})
#: Events that may say something about the level. After one of them it is read again.
ABOUT_LEVEL = (*KYC_TYPES, EventType.CLAIM_REVOKED)
#: How long a level counts that a Connect code brought. The specification names no period.
HELD_BY_CODE = timedelta(days=30)
#: What the end of the KYC claim says about the level.
NOTHING_STATED = KycStatus(kyc_level="", status="", provider="", verified_at=None)


def is_covered(identity: LinkedIdentity) -> bool:
    """Whether the person's consent covers KYC."""
    return identity.consent == Consent.GRANTED and not SCOPES.isdisjoint(identity.scopes)


def holds_until(identity: LinkedIdentity) -> datetime | None:
    """Until when the level counts, or None if it does not: ``KYC_HOLDS`` after it was last stated.

    Upkeep cannot re-read a level from a Connect code, so that one counts for 30 days.
    """
    if identity.kyc_said_at is None:
        return None
    if SCOPE not in identity.scopes:
        return identity.kyc_said_at + HELD_BY_CODE
    return identity.kyc_said_at + conf.application(identity.application).kyc_holds


def state(identity: LinkedIdentity, stated: KycStatus, event: WebhookEvent) -> bool:
    """Set the KYC columns to what ``event`` stated, unless a newer statement is known."""
    at, held_at = event.occurred_at, identity.kyc_said_at
    is_verified = stated.status == VERIFIED
    if held_at is None or at < held_at:
        is_close = held_at is None or (not is_verified and at >= held_at - CLOCK_SKEW)
        if not is_close or _is_followed(event):
            return False
    held = KycStatus(identity.kyc_level, identity.kyc_status, identity.kyc_provider, None)
    if at == held_at and _rank(stated) <= _rank(held):
        return False
    dated = replace(stated, verified_at=at if is_verified else None)
    identity.set_columns(columns_of(dated, said_at=at))
    signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    return True


def columns_of(stated: KycStatus, *, said_at: datetime) -> dict[str, Any]:
    """The columns that a level changes. ``said_at``: when the service stated it, or was asked."""
    return {
        "kyc_level": stated.kyc_level,
        "kyc_status": stated.status,
        "kyc_provider": stated.provider,
        "kyc_verified_at": stated.verified_at,
        "kyc_said_at": said_at,
    }


def is_about_level(event: WebhookEvent) -> bool:
    """Whether the event says something about the level: KYC, or the end of its claim or of all."""
    if event.event_type == EventType.CLAIM_REVOKED:
        return NamedClaim.parse(event.payload or {}).claim_type in ("", "kyc_verified")
    return event.event_type in KYC_TYPES


def _is_followed(event: WebhookEvent) -> bool:
    """Whether a newer event made a statement about the subject's level."""
    newer = WebhookEvent.objects.filter(
        subject_digest=event.subject_digest,
        event_type__in=ABOUT_LEVEL,
        occurred_at__gt=event.occurred_at,
    )
    return any(map(is_about_level, newer))


def _rank(stated: KycStatus) -> tuple[bool, str, str, str]:
    """Of two statements of one moment the greater one counts: a rejection, else any fixed rule."""
    return (stated.status != VERIFIED, stated.status, stated.kyc_level, stated.provider)
