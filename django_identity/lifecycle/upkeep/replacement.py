"""Compute what an answer about a person's claims changes, then write it in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import signals, vault
from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle.upkeep import claim_rows
from django_identity.models import KID_LENGTH, LinkedIdentity, StoredClaim
from django_identity.service.messages import ClaimsAnswer
from django_identity.service.moments import bounded

CREDENTIAL_LIFETIME = timedelta(hours=24)
DUE_AT_SHARE = 0.75
DUE_SPREAD = 0.10
# An answer from a cache may expire at once. It must not cause calls without a pause.
SOONEST = timedelta(minutes=5)

#: No credential is held.
NO_CREDENTIAL: Mapping[str, Any] = {
    "credential": "",
    "credential_kid": "",
    "credential_issued_at": None,
    "credential_expires_at": None,
}

logger = logging.getLogger("django_identity.claims")


@dataclass(frozen=True, slots=True, repr=False)
class Replacement:
    """The changes by an answer: columns of the identity, and its claims.

    ``rows`` is None if only the revocations in the answer count.
    """

    answer: ClaimsAnswer
    columns: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[StoredClaim, ...] | None = None


@sensitive_variables()
def prepare(
    application: Application,
    identity: LinkedIdentity,
    answer: ClaimsAnswer,
    proof: VerifiedCredential | None,
) -> Replacement:
    """Compute the changes by ``answer``. Nothing is written yet.

    A credential that is older than the stored one is refused, because it could replay a revoked
    claim. Claims that the answer lists as revoked are revoked in any case.
    """
    if proof is not None and is_older(proof, identity):
        return Replacement(answer, {"refetch_due_at": timezone.now() + SOONEST})
    now = timezone.now()
    ends_at = min(proof.expires_at, now + CREDENTIAL_LIFETIME) if proof else None
    if proof and proof.expires_at > now + CREDENTIAL_LIFETIME:
        logger.info("a credential says that it lives longer than 24 hours; it is kept for those")
    fresh_until = ends_at or (now if answer.claims else now + CREDENTIAL_LIFETIME)
    columns = {
        "credential": _sealed(application, identity, answer) if proof else "",
        "credential_kid": _storable_kid(proof.kid) if proof else "",
        "credential_issued_at": _issued_at(proof) if proof else None,
        "credential_expires_at": ends_at,
        "refetch_due_at": due_at(identity, now=now, ends_at=fresh_until),
    }
    rows = claim_rows.rows(identity, answer, proof, ends_at=ends_at)
    return Replacement(answer, columns, rows)


def write(identity: LinkedIdentity, new: Replacement) -> None:
    """Store the claims of ``new``. The caller has already written the columns.

    Both are in one transaction, in this order, because every writer locks the identity's row first.
    """
    if new.rows is None:
        changed = claim_rows.revoke_listed(identity, new.answer)
    else:
        changed = claim_rows.replace(identity, new.rows)
    if changed:
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def take_back(identity: LinkedIdentity) -> None:
    """Revoke all claims, because the person no longer shows them. The identity's row is locked."""
    if claim_rows.revoke_all(identity):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def is_older(proof: VerifiedCredential, identity: LinkedIdentity) -> bool:
    """Whether ``proof`` was issued before the stored credential, or before a claim was revoked.

    Both times are the service's. A credential may name whole seconds only.
    """
    issued_at, revoked_at = _issued_at(proof), identity.claims_revoked_at
    if issued_at is None:
        return False
    known = (identity.credential_issued_at, revoked_at and revoked_at.replace(microsecond=0))
    return any(moment is not None and issued_at < moment for moment in known)


def _issued_at(proof: VerifiedCredential) -> datetime | None:
    return None if proof.issued_at is None else bounded(proof.issued_at)


def _sealed(application: Application, identity: LinkedIdentity, answer: ClaimsAnswer) -> str:
    context = identity.sealing_context("credential")
    return vault.seal(answer.credential or "", keys=application.encryption_keys, context=context)


def _storable_kid(kid: str) -> str:
    return kid if len(kid) <= KID_LENGTH and kid.isprintable() else ""


def due_at(identity: LinkedIdentity, *, now: datetime, ends_at: datetime) -> datetime:
    """After about three quarters of the remaining life, with a fixed offset for each identity."""
    position = int(identity.subject_digest[:8], 16) / 0xFFFFFFFF
    share = DUE_AT_SHARE + DUE_SPREAD * (2 * position - 1)
    return now + max((ends_at - now) * share, SOONEST)
