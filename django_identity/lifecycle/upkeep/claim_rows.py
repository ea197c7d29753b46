"""Compute the stored claims of an identity from an answer and its credential."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from django_identity.credentials import VerifiedCredential
from django_identity.models import NEVER, LinkedIdentity, StoredClaim
from django_identity.service.messages import ClaimsAnswer, ListedClaim
from django_identity.service.moments import NotAMoment, parse_moment

Key = tuple[str, str]

LONGEST_NAME = 128
WRITTEN = ("value", "proof_hash", "issued_at", "expires_at", "valid_until", "revoked")
# The content of a claim. The other columns are its origin and its lifetime.
SAID = ("value", "revoked")


def rows(
    identity: LinkedIdentity,
    answer: ClaimsAnswer,
    proof: VerifiedCredential | None,
    *,
    ends_at: datetime | None,
) -> tuple[StoredClaim, ...]:
    """One row for each listed claim, and one for each proven claim that is not listed.

    Proven claims are valid until ``ends_at`` (the credential's expiry) at the latest. A claim that
    is listed twice is revoked if one of the two entries is revoked.
    """
    proven = proof.claims_as_json() if proof else {}
    disclosed = {name: value for name, value in proven.items() if _is_storable(name, value)}
    made: dict[Key, StoredClaim] = {}
    for listed in _listed(answer, disclosed):
        row = _row(identity, listed, disclosed, ends_at)
        earlier = made.setdefault(key_of(row), row)
        earlier.revoked |= row.revoked
    return tuple(made.values())


def replace(identity: LinkedIdentity, wanted: Iterable[StoredClaim]) -> bool:
    """Replace the stored claims by ``wanted``. Returns whether their content has changed.

    Existing rows are updated. In the common case one UPDATE sets the new expiry of all rows.
    """
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
            has_changed |= not differing.isdisjoint(SAID) or _is_proof(before) != _is_proof(after)
            rewritten.append(_overwrite(before, after))
            columns |= differing
    if gone:
        StoredClaim.objects.filter(pk__in=gone).delete()
    if rewritten:
        _update(rewritten, columns)
    if new:
        StoredClaim.objects.bulk_create(new, ignore_conflicts=True)
    return has_changed


def _update(rewritten: Sequence[StoredClaim], columns: Iterable[str]) -> None:
    """Write ``columns`` of the rows. Equal values, as a new expiry, need no CASE for each row."""
    first, *others = ({name: getattr(row, name) for name in columns} for row in rewritten)
    if "value" not in first and all(values == first for values in others):
        same = StoredClaim.objects.filter(pk__in=[row.pk for row in rewritten])
        same.update(updated_at=timezone.now(), **first)
    else:
        StoredClaim.objects.bulk_update(rewritten, [*columns, "updated_at"])


def revoke_listed(identity: LinkedIdentity, answer: ClaimsAnswer) -> bool:
    """Revoke the claims that the answer lists as revoked. Returns whether any row changed."""
    revoked = {(listed.claim_type, listed.provider) for listed in answer.claims if listed.revoked}
    if not revoked:
        return False
    standing = StoredClaim.objects.filter(identity_id=identity.pk, revoked=False)
    hit = [row.pk for row in standing if key_of(row) in revoked]
    if hit:
        now = timezone.now()
        StoredClaim.objects.filter(pk__in=hit).update(revoked=True, updated_at=now)
    return bool(hit)


def revoke_all(identity: LinkedIdentity) -> bool:
    """Revoke every claim and forget its value. True if any was standing."""
    mine = StoredClaim.objects.filter(identity_id=identity.pk)
    was_standing = mine.filter(revoked=False).exists()
    mine.update(revoked=True, value=None, valid_until=None, updated_at=timezone.now())
    return was_standing


def key_of(row: StoredClaim) -> Key:
    """The key of a claim. It is compared in Python, because collations may ignore case."""
    return row.claim_type, row.provider


def _differing(before: StoredClaim, after: StoredClaim) -> set[str]:
    """The columns in which two rows of a claim differ."""
    others = {name for name in WRITTEN[1:] if getattr(before, name) != getattr(after, name)}
    return others | ({"value"} if _as_text(before.value) != _as_text(after.value) else set())


def _is_proof(row: StoredClaim) -> bool:
    return row.valid_until is not None


def _overwrite(row: StoredClaim, after: StoredClaim) -> StoredClaim:
    for name in WRITTEN:
        setattr(row, name, getattr(after, name))
    row.updated_at = timezone.now()
    return row


def _as_text(value: object) -> str:
    """A text for comparison, because in Python ``True`` equals ``1``, but not for a gate."""
    return json.dumps(value, sort_keys=True)


def _is_storable(name: str, value: object) -> bool:
    """PostgreSQL cannot store NUL. A claim that cannot be stored opens no gate."""
    return len(name) <= LONGEST_NAME and "\0" not in name and "\\u0000" not in _as_text(value)


def _listed(answer: ClaimsAnswer, disclosed: Mapping[str, object]) -> Iterator[ListedClaim]:
    yield from answer.claims
    for claim_type in disclosed.keys() - {listed.claim_type for listed in answer.claims}:
        provider = str(_member(disclosed[claim_type], "provider") or "")[:LONGEST_NAME]
        yield ListedClaim(claim_type, provider, revoked=False, proof_hash="", expires_at=None)


def _row(
    identity: LinkedIdentity,
    listed: ListedClaim,
    disclosed: Mapping[str, object],
    ends_at: datetime | None,
) -> StoredClaim:
    value = disclosed.get(listed.claim_type)
    is_proven = listed.claim_type in disclosed and _is_about(value, listed)
    expires_at = _earliest(listed.expires_at, _moment(value, "expires_at"))
    return StoredClaim(
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


def _is_about(value: object, listed: ListedClaim) -> bool:
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
