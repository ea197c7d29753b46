"""The KYC level: until when it counts, and its columns.

The level runs out by time (``holds_until``). It ends at once by a rejection, and by the end of the
KYC claim (``effects``), of the grant (``grants.end``) or of the consent (``withdrawal``).
"""

from datetime import datetime, timedelta

from django_identity import conf, signals
from django_identity.conf.rules import KYC_SCOPE
from django_identity.lifecycle.ground import clocks
from django_identity.models import LinkedIdentity
from django_identity.models.choices import Columns
from django_identity.service.answers import KycStatus

#: The scope of a sign-in, with which upkeep re-reads the level.
SCOPE = KYC_SCOPE
#: All that cover a level: that of a sign-in, and that of a Connect code.
SCOPES = (SCOPE, "kyc:status")
#: How long a level counts that a Connect code brought. The specification names no period.
HELD_BY_CODE = timedelta(days=30)


def holds_until(identity: LinkedIdentity) -> datetime | None:
    """Until when the level counts, if it does: ``KYC_HOLDS`` after it was last stated.

    Upkeep cannot re-read a level from a Connect code, so such a level counts for 30 days.
    """
    said_at = identity.kyc_said_at
    if said_at is None or clocks.is_ahead(said_at):
        return None
    if SCOPE not in identity.scopes:
        return said_at + HELD_BY_CODE
    return said_at + conf.application().kyc_holds


def announce_change(identity: LinkedIdentity, *, before: tuple[str, str]) -> None:
    """Tell the site, after the commit, if level or status differ from ``before``."""
    if identity.kyc_state != before:
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)


def level_columns(stated: KycStatus, *, said_at: datetime | None) -> Columns:
    """The columns that a level changes. ``said_at``: when the service stated it, or was asked."""
    return {
        "kyc_level": stated.kyc_level,
        "kyc_status": stated.status,
        "kyc_provider": stated.provider,
        "kyc_verified_at": stated.verified_at,
        "kyc_said_at": said_at,
    }


def level_of(identity: LinkedIdentity) -> KycStatus:
    """The level as it is stored."""
    return KycStatus(
        kyc_level=identity.kyc_level,
        status=identity.kyc_status,
        provider=identity.kyc_provider,
        verified_at=identity.kyc_verified_at,
    )


#: What the end of the KYC claim says about the level.
NOTHING_STATED = KycStatus(kyc_level="", status="", provider="", verified_at=None)
#: Nothing is known of the person's KYC.
NO_LEVEL = level_columns(NOTHING_STATED, said_at=None)
