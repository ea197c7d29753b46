"""The reasons why a gate is closed, and which of them the records of a person give.

Of several, ``standing`` says which one counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django_identity import conf
from django_identity.conf.rules import CLAIMS_SCOPE
from django_identity.lifecycle.ground import kyc
from django_identity.models import LinkedIdentity, RevokedBy, StoredClaim
from django_identity.service.webhooks import REJECTED, VERIFIED


class Reason(StrEnum):
    """Why a gate is closed for a signed-in person."""

    NOT_LINKED = "not_linked"
    CONSENT_REVOKED = "consent_revoked"
    #: An operator of the site ended the connection.
    ENDED_BY_SITE = "ended_by_site"
    CONNECT_ONLY = "code_alone"
    #: The person is not verified, so nothing is confirmed.
    NOT_HELD = "not_held"
    #: The service verified the person and did not confirm this. It may not apply to them.
    NOT_CONFIRMED = "not_confirmed"
    #: What the service says could not be read yet.
    UNREAD = "unread"
    RUN_OUT = "run_out"
    REVOKED = "revoked"
    OTHER_VALUE = "other_value"
    NOT_VERIFIED = "not_verified"
    #: The service did not accept the person's verification.
    REJECTED = "rejected"
    LOWER_LEVEL = "lower_level"
    #: The person has not allowed this yet.
    SCOPE_NOT_GIVEN = "scope_not_given"
    #: The person has not come back from the service lately.
    NOT_RECENT = "not_recent"
    #: Only on the account page: the site can no longer ask the service about the person.
    PERMISSION_ENDED = "permission_ended"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a gate is closed, ``since`` when, and what the claim says instead, if known."""

    reason: Reason
    since: datetime | None = None
    held: str = ""
    claim_type: str = ""


def revocation_reason(revoked_by: str) -> Reason:
    """Why all gates are closed after a revocation: the person ended the consent, or the site."""
    if revoked_by == RevokedBy.SITE:
        return Reason.ENDED_BY_SITE
    return Reason.CONSENT_REVOKED


def end_of(rows: Iterable[StoredClaim]) -> Shortfall | None:
    """Why none of ``rows`` proves anything now. None if none of them ever did."""
    rows = list(rows)
    ends = [row.valid_until for row in rows if row.valid_until and not row.revoked]
    if ends:
        return Shortfall(Reason.RUN_OUT, since=max(ends))
    revoked = [row.revoked_at for row in rows if row.revoked_at]
    if revoked:
        return Shortfall(Reason.REVOKED, since=max(revoked))
    return None


def why_not_listed(identity: LinkedIdentity, *, lists_any: bool) -> Reason:
    """Why the site knows nothing of a claim. ``lists_any``: it knows of others."""
    if _may_be_allowed(CLAIMS_SCOPE, identity):
        return Reason.SCOPE_NOT_GIVEN
    was_read = lists_any or not identity.last_error
    if not was_read and identity.kyc_status != REJECTED:
        return Reason.UNREAD
    return why_unproven(identity)


def why_unproven(identity: LinkedIdentity) -> Reason:
    """What the verification says about a proof that is missing."""
    if identity.kyc_status == REJECTED:
        return Reason.REJECTED
    if identity.kyc_status == VERIFIED:
        return Reason.NOT_CONFIRMED
    return Reason.NOT_HELD


def why_not_verified(identity: LinkedIdentity) -> Reason:
    """Why the KYC level is missing."""
    if identity.kyc_status == REJECTED:
        return Reason.REJECTED
    if identity.kyc_status:
        return Reason.NOT_VERIFIED
    # The service stated nothing.
    if _may_be_allowed(kyc.SCOPE, identity):
        return Reason.SCOPE_NOT_GIVEN
    if identity.last_error:
        return Reason.UNREAD
    return Reason.NOT_VERIFIED


def _may_be_allowed(scope: str, identity: LinkedIdentity) -> bool:
    """Whether the site asks for ``scope``, and the person has yet to allow it."""
    scopes = conf.application().scopes
    return scope in scopes and scope not in identity.scopes
