"""What the service's answers change: columns of the identity, its claims, and the next re-fetch.

``prepare`` computes the changes of a claims answer, ``write`` stores them. A KYC level counts only
for a limited time after the service last confirmed it (``kyc_checked_at``), so it has a due date
too.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import signals, vault
from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.models import KID_LENGTH, NEVER, Consent, LinkedIdentity, StoredClaim
from django_identity.service.answers import ClaimsAnswer, ListedClaim
from django_identity.service.moments import BEGINNING, NO_END, NotAMoment, parse_moment

KYC_SCOPE = "kyc:read"
CREDENTIAL_LIFETIME = timedelta(hours=24)
# For an identity without claims: three quarters of this time are one day.
LONGEST_LEVEL_LIFE = timedelta(hours=32)
DUE_AT_SHARE = 0.75
DUE_SPREAD = 0.10
# An answer from a cache may expire at once. It must not cause calls without a pause.
SOONEST = timedelta(minutes=5)
LONGEST_NAME = 128
WRITTEN = ("value", "proof_hash", "issued_at", "expires_at", "valid_until", "revoked")
# The content of a claim. The other columns are its origin and its lifetime.
SAID = ("value", "revoked")

#: No credential is held.
NO_CREDENTIAL: Mapping[str, Any] = {
    "credential": "",
    "credential_kid": "",
    "credential_issued_at": None,
    "credential_expires_at": None,
}
logger = logging.getLogger("django_identity.claims")

Key = tuple[str, str]


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
    now = timezone.now()
    if proof is not None and is_older(proof, identity):
        due_soon = next_refetch(application, identity, claims_due_at=now + SOONEST)
        return Replacement(answer, {"refetch_due_at": due_soon})
    ends_at = min(proof.expires_at, now + CREDENTIAL_LIFETIME) if proof else None
    if proof and proof.expires_at > now + CREDENTIAL_LIFETIME:
        logger.info("a credential says that it lives longer than 24 hours; it is kept for those")
    fresh_until = ends_at or (now if answer.claims else now + CREDENTIAL_LIFETIME)
    claims_due_at = due_at(identity, now=now, ends_at=fresh_until)
    columns = {
        **NO_CREDENTIAL,
        "refetch_due_at": next_refetch(application, identity, claims_due_at=claims_due_at),
    }
    rows = _rows(identity, answer, proof.claims_as_json() if proof else {}, ends_at)
    if proof is not None:
        kid, keys = proof.kid, application.encryption_keys
        context = identity.sealing_context("credential")
        columns |= {
            "credential_kid": kid if len(kid) <= KID_LENGTH and kid.isprintable() else "",
            "credential_issued_at": _issued_at(proof),
            "credential_expires_at": ends_at,
            "credential": vault.seal(answer.credential or "", keys=keys, context=context),
        }
    return Replacement(answer, columns, rows)


def write(identity: LinkedIdentity, new: Replacement) -> None:
    """Store the claims of ``new``. The caller has already written the columns.

    Both are in one transaction, in this order, because every writer locks the identity's row first.
    """
    if new.rows is None:
        changed = _revoke_listed(identity, new.answer)
    else:
        changed = _replace(identity, new.rows)
    if changed:
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def take_back(identity: LinkedIdentity) -> None:
    """Revoke all claims of a locked identity: the person no longer shows their values."""
    claims = StoredClaim.objects.filter(identity_id=identity.pk)
    held = claims.exclude(revoked=True, value__isnull=True)
    if held.update(revoked=True, value=None, valid_until=None, updated_at=timezone.now()):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def is_stale(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> bool:
    """Whether the stored credential is newer than the answer's, or the answer has none.

    An answer without valid claims needs no credential.
    """
    if proof is not None:
        return is_older(proof, identity)
    return any(not listed.revoked for listed in answer.claims)


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
    return proof.issued_at and min(max(proof.issued_at, BEGINNING), NO_END)


# KYC, and the next re-fetch


def may_read_level(identity: LinkedIdentity) -> bool:
    """Whether the person's consent is granted and covers KYC."""
    return identity.consent == Consent.GRANTED and KYC_SCOPE in identity.scopes


def next_refetch(
    application: Application, identity: LinkedIdentity, *, claims_due_at: datetime | None
) -> datetime | None:
    """When the next re-fetch is due, or None if there is nothing to fetch.

    With claims, the level is read together with them, if it lasts until then.
    """
    if not may_read_level(identity):
        return claims_due_at
    life = application.kyc_holds
    if claims_due_at is None:
        life = min(life, LONGEST_LEVEL_LIFE)
    checked_at = identity.kyc_checked_at or timezone.now()
    level_due_at = due_at(identity, now=checked_at, ends_at=checked_at + life)
    return min(claims_due_at or level_due_at, level_due_at)


def due_at(identity: LinkedIdentity, *, now: datetime, ends_at: datetime) -> datetime:
    """After about three quarters of the remaining life, with a fixed offset for each identity."""
    position = int(identity.subject_digest[:8], 16) / 0xFFFFFFFF
    share = DUE_AT_SHARE + DUE_SPREAD * (2 * position - 1)
    return now + max((ends_at - now) * share, SOONEST)


# The rows of the claims


def _rows(
    identity: LinkedIdentity,
    answer: ClaimsAnswer,
    proven: Mapping[str, object],
    ends_at: datetime | None,
) -> tuple[StoredClaim, ...]:
    """One row for each listed claim, and one for each ``proven`` claim that is not listed.

    Proven claims are valid until ``ends_at`` (the credential's expiry) at the latest. A claim that
    is listed twice is revoked if one of the two entries is revoked.
    """
    disclosed = {name: value for name, value in proven.items() if _is_storable(name, value)}
    listed_types = {listed.claim_type for listed in answer.claims}
    unlisted = (
        ListedClaim(
            claim_type,
            provider=str(_member(value, "provider") or "")[:LONGEST_NAME],
            revoked=False,
            proof_hash="",
            expires_at=None,
        )
        for claim_type, value in disclosed.items()
        if claim_type not in listed_types
    )
    made: dict[Key, StoredClaim] = {}
    for listed in (*answer.claims, *unlisted):
        value = disclosed.get(listed.claim_type)
        is_proven = listed.claim_type in disclosed and _proves(value, listed)
        expires_at = _earliest(listed.expires_at, _moment(value, "expires_at"))
        row = StoredClaim(
            identity=identity,
            claim_type=listed.claim_type,
            provider=listed.provider,
            value=value if is_proven else None,
            proof_hash=listed.proof_hash,
            issued_at=_moment(value, "issued_at") if is_proven else None,
            expires_at=expires_at,
            valid_until=_earliest(expires_at, ends_at) if is_proven else None,
            revoked=listed.revoked,
        )
        earlier = made.setdefault(key_of(row), row)
        earlier.revoked |= row.revoked
    return tuple(made.values())


def _is_storable(name: str, value: object) -> bool:
    """PostgreSQL cannot store NUL. A claim that cannot be stored opens no gate."""
    return len(name) <= LONGEST_NAME and "\0" not in name and "\\u0000" not in _as_text(value)


def _proves(value: object, listed: ListedClaim) -> bool:
    """Whether ``value`` proves the listed claim.

    A value with a provider proves only that provider's claim. A value without a provider proves
    nothing for a provider whose claim is revoked.
    """
    named = _member(value, "provider")
    return not listed.revoked if named is None else named == listed.provider


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _moment(value: object, name: str) -> datetime | None:
    """A time-stamp in a claim's value. An unreadable one counts as long past."""
    text = _member(value, name)
    if text is None:
        return None
    try:
        return parse_moment(text, takes_days=True) if isinstance(text, str) else NEVER
    except NotAMoment:
        return NEVER


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def key_of(row: StoredClaim) -> Key:
    """The key of a claim. It is compared in Python, because collations may ignore case."""
    return row.claim_type, row.provider


def _replace(identity: LinkedIdentity, wanted: Iterable[StoredClaim]) -> bool:
    """Replace the stored claims by ``wanted``. Returns whether their content has changed."""
    held = {key_of(row): row for row in StoredClaim.objects.filter(identity_id=identity.pk)}
    by_key = {key_of(row): row for row in wanted}
    gone = [row.pk for key, row in held.items() if key not in by_key]
    new = [row for key, row in by_key.items() if key not in held]
    has_changed = bool(gone or new)
    rewritten: list[StoredClaim] = []
    columns: set[str] = set()
    for key in held.keys() & by_key.keys():
        before, after = held[key], by_key[key]
        if differing := _differing(before, after):
            was_proven, is_proven = before.valid_until is not None, after.valid_until is not None
            has_changed |= not differing.isdisjoint(SAID) or was_proven != is_proven
            columns |= differing
            for name in WRITTEN:
                setattr(before, name, getattr(after, name))
            before.updated_at = timezone.now()
            rewritten.append(before)
    if gone:
        StoredClaim.objects.filter(pk__in=gone).delete()
    if rewritten:
        StoredClaim.objects.bulk_update(rewritten, [*columns, "updated_at"])
    if new:
        StoredClaim.objects.bulk_create(new, ignore_conflicts=True)
    return has_changed


def _differing(before: StoredClaim, after: StoredClaim) -> set[str]:
    """The columns in which two rows of a claim differ."""
    others = {name for name in WRITTEN[1:] if getattr(before, name) != getattr(after, name)}
    return others | ({"value"} if _as_text(before.value) != _as_text(after.value) else set())


def _as_text(value: object) -> str:
    """A text for comparison, because in Python ``True`` equals ``1``, but not for a gate."""
    return json.dumps(value, sort_keys=True)


def _revoke_listed(identity: LinkedIdentity, answer: ClaimsAnswer) -> bool:
    """Revoke the claims that the answer lists as revoked. Returns whether any row changed."""
    revoked = {(listed.claim_type, listed.provider) for listed in answer.claims if listed.revoked}
    standing = StoredClaim.objects.filter(identity_id=identity.pk, revoked=False)
    hit = [row.pk for row in standing if key_of(row) in revoked] if revoked else []
    if hit:
        StoredClaim.objects.filter(pk__in=hit).update(revoked=True, updated_at=timezone.now())
    return bool(hit)
