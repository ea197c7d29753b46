"""The KYC level: which of two statements counts, and until when the level does.

Between two events the newer statement counts, and a rejection wins at equal times, so the result is
the same in every order. Against the site's own answer a withdrawal counts that is hardly older.

The level runs out by time (``holds_until``). It ends at once by a rejection, and by the end of the
KYC claim (``state``), of the grant (``tokens.end_grant``) or of the consent (``withdrawal``).
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django_identity import conf, signals
from django_identity.event_types import ABOUT_LEVEL, kind_of
from django_identity.lifecycle import clocks
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.service.answers import KycStatus
from django_identity.service.webhooks import VERIFIED, NamedClaim

#: The scope of a sign-in, with which upkeep re-reads the level.
SCOPE = "kyc:read"
#: All that cover a level: that of a sign-in, and that of a Connect code.
SCOPES = (SCOPE, "kyc:status")
CLAIM = "kyc_verified"
#: How long a level counts that a Connect code brought. The specification names no period.
HELD_BY_CODE = timedelta(days=30)
#: What the end of the KYC claim says about the level.
NOTHING_STATED = KycStatus(kyc_level="", status="", provider="", verified_at=None)


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
    if not _is_newest(identity, stated, event):
        return False
    at = event.occurred_at
    verified_at = None
    if stated.status == VERIFIED:
        verified_at = at
    dated = replace(stated, verified_at=verified_at)
    identity.set_columns(columns_of(dated, said_at=at))
    signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    return True


def _is_newest(
    identity: LinkedIdentity, stated: KycStatus, event: WebhookEvent
) -> bool:
    """Whether the statement of ``event`` is the newest, and counts."""
    at = event.occurred_at
    known_at = identity.kyc_said_at
    if known_at is None:
        return not _is_followed(event, identity)
    if at > known_at:
        return True
    if at == known_at:
        known = KycStatus(
            identity.kyc_level, identity.kyc_status, identity.kyc_provider, None
        )
        return _rank(stated) > _rank(known)
    # What is known may be the site's own answer, by another clock: then a withdrawal wins.
    if stated.status == VERIFIED or not clocks.may_be_newer(at, than=known_at):
        return False
    return not _is_followed(event, identity)


def may_be_newer(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Whether a statement that did not count may be newer than the site's own answer.

    Then the service is asked again. A withdrawal that lost has lost to a newer event.
    """
    known_at = identity.kyc_said_at
    if (
        identity.connect_only
        or known_at is None
        or kind_of(event.event_type).takes_away
    ):
        return False
    return clocks.may_be_newer(event.occurred_at, than=known_at) and not _is_followed(
        event, identity
    )


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
    """Whether the event says something about the level.

    A KYC event does, and the revocation of the KYC claim or of all claims.
    """
    kind = kind_of(event.event_type)
    if kind.says_level and kind.names_claim:
        return NamedClaim.parse(event.payload or {}).claim_type in ("", CLAIM)
    return kind.says_level


def _is_followed(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether a newer event made a statement about the subject's level.

    One that the newest sign-in has superseded made none: else the end would depend on which of the
    two was delivered first.
    """
    newer = WebhookEvent.objects.filter(
        subject_digest=event.subject_digest,
        event_type__in=ABOUT_LEVEL,
        occurred_at__gt=event.occurred_at,
    )
    return any(
        is_about_level(later) and clocks.counts(later, identity) for later in newer
    )


def _rank(stated: KycStatus) -> tuple[bool, str, str, str]:
    """Of two statements of one moment the greater one counts: a rejection, else any fixed rule."""
    return (stated.status != VERIFIED, stated.status, stated.kyc_level, stated.provider)
