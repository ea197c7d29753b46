"""The end of a consent: the site stops using the person's data at once.

Two time-stamps make the result independent of the order of events. ``consent_changed_at`` is the
newest known change; it decides whether the consent is granted. ``signed_in_at`` is the start of the
last sign-in, which brought tokens, claims and credential; it decides whether a revocation ends
them.
"""

from datetime import datetime

from django.utils import timezone

from django_identity import database
from django_identity.models import (
    NEVER,
    Consent,
    LinkedIdentity,
    RevokedBy,
    StoredClaim,
    TokenGrant,
)


def stop_processing(
    identity: LinkedIdentity,
    *,
    at: datetime,
    received_at: datetime,
    by: RevokedBy = RevokedBy.PERSON,
) -> None:
    """Delete tokens, credential, KYC data and claim values, and end the sessions.

    ``at``: the time of the revocation. The caller has locked the identity's row and saves it.
    """
    identity.consent_changed_at = max(identity.consent_changed_at, at)
    # A time-stamp from the future must not block a sign-in after the revocation was received.
    revoked_at = min(at, max(received_at, identity.arrived_at))
    if identity.revoked_at is None or revoked_at >= identity.revoked_at:
        identity.revoked_at, identity.revoked_by = revoked_at, by
    identity.credential = identity.credential_kid = ""
    identity.credential_issued_at = identity.credential_expires_at = None
    identity.connect_person = ""
    identity.refetch_due_at = None
    if identity.is_withdrawn or identity.consent == Consent.REVOKED:
        # Empty what KYC events and answers brought, so that the next sign-in decides alone.
        identity.kyc_level = identity.kyc_status = identity.kyc_provider = identity.kyc_rank = ""
        identity.kyc_verified_at = identity.kyc_checked_at = None
        identity.kyc_changed_at = NEVER
    TokenGrant.objects.filter(identity=identity).delete()
    claims = StoredClaim.objects.filter(identity=identity)
    claims.update(revoked=True, value=None, updated_at=timezone.now())


def revoke(subject_digest: str) -> LinkedIdentity | None:
    """Revoke the consent now, by the site's own clock and decision.

    A consent or a sign-in with a later time-stamp comes from a clock that is ahead, so it does not
    count. Returns the identity, or None if there is none.
    """
    now = timezone.now()
    of_subject = LinkedIdentity.objects.filter(subject_digest=subject_digest)
    with database.atomic():
        # Lock by a write: SQLite then waits for the lock. After a read it would fail at once.
        if not of_subject.update(updated_at=now):
            return None
        identity = of_subject.get()
        identity.consent = Consent.REVOKED
        stop_processing(identity, at=now, received_at=now, by=RevokedBy.SITE)
        identity.save()
    return identity
