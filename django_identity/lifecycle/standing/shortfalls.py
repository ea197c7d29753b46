"""The reasons for a closed gate, or an ended session, that the records of a person give.

If there are several, ``standing`` says which one counts.
"""

from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth import get_user_model

from django_identity import conf, database
from django_identity.conf.rules import CLAIMS_SCOPE
from django_identity.exceptions import CredentialRejected
from django_identity.lifecycle.ground import kyc, withdrawal
from django_identity.models import Consent, LinkedIdentity, RevokedBy, StoredClaim
from django_identity.reasons import Reason, Shortfall
from django_identity.service.webhooks import REJECTED, VERIFIED


def is_unverifiable(identity: LinkedIdentity) -> bool:
    """Whether the newest credential failed a check."""
    return identity.last_error == CredentialRejected.code


def because(
    reason: Reason,
    identity: LinkedIdentity,
    *,
    since: datetime | None = None,
) -> Shortfall:
    """The shortfall with this reason.

    If the newest credential failed a check, nothing could be read or renewed.
    """
    if reason in (Reason.UNREAD, Reason.RUN_OUT) and is_unverifiable(identity):
        return Shortfall(Reason.UNVERIFIABLE, reference=str(identity.pk))
    return Shortfall(reason, since=since)


def end_of(identity: LinkedIdentity, rows: Iterable[StoredClaim]) -> Shortfall | None:
    """Why none of ``rows`` proves anything now. None if none of them ever did."""
    rows = list(rows)
    ends = [row.valid_until for row in rows if row.valid_until and not row.revoked]
    if ends:
        return because(Reason.RUN_OUT, identity, since=max(ends))
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
    return Reason.NOT_VERIFIED


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


def revocation_reason(revoked_by: str) -> Reason:
    """Why all gates are closed after a revocation: the person ended the consent, or the site."""
    if revoked_by == RevokedBy.SITE:
        return Reason.ENDED_BY_SITE
    return Reason.CONSENT_REVOKED


def why_session_ended(key: str) -> tuple[str, datetime | None]:
    """Why and when the session of this user ended: a revocation's reason, or ``"erased"``.

    ``key``: as the session has it. The reason is empty if neither ended the session.
    """
    user_id = get_user_model()._meta.pk.to_python(key)
    if withdrawal.waits_for_erasure(user_id):
        return "erased", None
    identity = LinkedIdentity.objects.filter(user_id=user_id).first()
    if identity is None:
        user = database.users().filter(pk=user_id).first()
        if user is None or not user.is_active:
            return "erased", None
    elif identity.consent == Consent.REVOKED:
        return revocation_reason(identity.revoked_by), identity.revoked_at
    return "", None
