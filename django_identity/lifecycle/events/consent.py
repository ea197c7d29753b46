"""The end of consent: what was held stops being used at once.

Two clocks keep the outcome free of the order in which the news comes. ``consent_changed_at`` is the
newest change that was heard of, and decides whether consent stands; ``signed_in_at`` is when the
flow began that brought tokens, claims and credential, and decides whether a revocation ends them.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant


def stop_processing(identity: LinkedIdentity, *, at: datetime) -> None:
    """Tokens and credential go, claims count no more, sessions end. The caller saves the identity.

    ``at``: the moment of the revocation. The identity's row is locked.
    """
    identity.consent_changed_at = max(identity.consent_changed_at, at)
    identity.revoked_at = max(identity.revoked_at or at, at)
    identity.credential = identity.credential_kid = ""
    identity.credential_issued_at = identity.credential_expires_at = None
    identity.connect_person = ""
    identity.refetch_due_at = None
    TokenGrant.objects.filter(identity=identity).delete()
    claims = StoredClaim.objects.filter(identity=identity, revoked=False)
    claims.update(revoked=True, updated_at=timezone.now())


def revoke(subject_digest: str) -> LinkedIdentity | None:
    """Revoke the consent now, by our own clock, whatever the service granted.

    A consent or a sign-in that says it is newer is of a clock that is ahead, the service's or
    another machine's. Returns the identity, or None if there is none.
    """
    now = timezone.now()
    of_subject = LinkedIdentity.objects.filter(subject_digest=subject_digest)
    with transaction.atomic():
        # Locked by a write: SQLite then waits for the lock instead of failing at the upgrade.
        if not of_subject.update(updated_at=now):
            return None
        identity = of_subject.get()
        identity.consent = Consent.REVOKED
        stop_processing(identity, at=now)
        identity.save()
    return identity
