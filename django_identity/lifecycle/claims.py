"""What a claims answer changes: the columns of the identity and the rows of its claims.

A re-fetch and a sign-in store claims by these functions. A claim is proven if the verified
credential discloses it: only then its row has ``valid_until``, and only then it opens a gate.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from django_identity import conf, database, signals
from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle.withdrawal import NO_VALUE
from django_identity.models import LinkedIdentity, StoredClaim
from django_identity.models.choices import NEVER
from django_identity.service.answers import ClaimsAnswer, ListedClaim
from django_identity.service.members import LONGEST_NAME, without_controls
from django_identity.service.moments import NotAMoment, bounded, parse_moment

CREDENTIAL_LIFETIME = timedelta(hours=24)
#: The scope that covers them.
SCOPE = "claims:read"
#: The list and the credential name different providers for one claim.
PROVIDER_MISMATCH = "provider_mismatch"
WRITTEN = (*NO_VALUE, "revoked_at")

Key = tuple[str, str]


def is_usable(
    answer: ClaimsAnswer, proof: VerifiedCredential | None, identity: LinkedIdentity
) -> bool:
    """Whether the answer may replace the stored claims.

    Without a credential it can list no valid claim, and a credential that is older than the stored
    one could replay a claim that was revoked since. An unusable answer may only revoke: see
    ``revoke_listed``.
    """
    if proof is None:
        return all(listed.revoked for listed in answer.claims)
    issued_at = _issued_at(proof)
    held_at = identity.credential_issued_at
    return issued_at is None or held_at is None or issued_at >= held_at


def problem_of(
    answer: ClaimsAnswer, proof: VerifiedCredential | None, identity: LinkedIdentity
) -> str:
    """The code of what keeps a disclosed claim from being proven, or an empty text."""
    disclosed = _disclosed(proof, identity)
    return PROVIDER_MISMATCH if _mismatched(answer, disclosed) else ""


def columns_of(proof: VerifiedCredential | None) -> dict[str, Any]:
    """When the newest one was issued stays known: an older one could replay a revoked claim."""
    issued_at, ends_at = _issued_at(proof), None if proof is None else _ends_at(proof)
    issued = {} if issued_at is None else {"credential_issued_at": issued_at}
    return {"credential_expires_at": ends_at, **issued}


def lasts_until(proof: VerifiedCredential | None) -> datetime:
    """Until when a usable answer needs no other one."""
    if proof is None:
        return timezone.now() + CREDENTIAL_LIFETIME
    return _ends_at(proof)


def write(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> list[StoredClaim]:
    """Replace the stored claims by the answer's, and announce it if their content has changed.

    Returns what is stored then. In the transaction that has written or locked the row of the
    identity: every writer locks it first. Keys are compared in Python, because collations may
    ignore case.
    """
    wanted = rows_of(identity, answer, proof)
    held = {_key(row): row for row in StoredClaim.objects.filter(identity_id=identity.pk)}
    for key in held.keys() & wanted.keys():
        row = wanted[key]
        row.pk = held[key].pk
        row.revoked_at = _revoked_at(held[key], row, _issued_at(proof))
    gone = [held[key].pk for key in held.keys() - wanted.keys()]
    if gone:
        StoredClaim.objects.filter(pk__in=gone).delete()
    _update([row for row in wanted.values() if row.pk])
    new = [row for row in wanted.values() if not row.pk]
    StoredClaim.objects.bulk_create(new, ignore_conflicts=True)
    if set(map(_content, held.values())) != set(map(_content, wanted.values())):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return list(wanted.values())


def _update(rows: list[StoredClaim]) -> None:
    """Write these rows, which are stored, by their keys: one statement, whose size is theirs.

    ``bulk_update`` would send a CASE over all rows for each column, which takes ten times as long.
    """
    StoredClaim.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=WRITTEN,
        unique_fields=database.conflict_columns("id"),
    )


def rows_of(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> dict[Key, StoredClaim]:
    """One row for each listed claim, and one for each proven claim that is not listed.

    A claim that is listed twice is revoked if one of the two entries is revoked.
    """
    disclosed = _disclosed(proof, identity)
    mismatched = _mismatched(answer, disclosed)
    rows: dict[Key, StoredClaim] = {}
    for listed in (*answer.claims, *_unlisted(answer, disclosed)):
        if not _is_kept(listed.claim_type, identity):
            continue
        row = _listed_row(identity, listed)
        if proof is not None and listed.claim_type in disclosed:
            value = disclosed[listed.claim_type]
            if _proves(value, listed):
                _prove(row, value, proof)
            elif listed.claim_type in mismatched and not listed.revoked:
                # Both names are kept for the operators. Without ``valid_until`` it opens no gate.
                row.value = value
        earlier = rows.setdefault(_key(row), row)
        earlier.revoked_at = earlier.revoked_at or row.revoked_at
    return rows


def _listed_row(identity: LinkedIdentity, listed: ListedClaim) -> StoredClaim:
    return StoredClaim(
        identity=identity,
        claim_type=listed.claim_type,
        provider=listed.provider,
        proof_hash=listed.proof_hash,
        expires_at=listed.expires_at,
        revoked_at=timezone.now() if listed.revoked else None,
    )


def _proves(value: object, listed: ListedClaim) -> bool:
    """Whether a disclosed value proves the listed claim.

    A value proves the claim of the provider that it names; without one, every claim of its type but
    revoked ones.
    """
    named = _provider_in(value)
    return not listed.revoked if named is None else named == listed.provider


def _prove(row: StoredClaim, value: Any, proof: VerifiedCredential) -> None:
    """Proven claims are valid until the credential's end at the latest."""
    members = value if isinstance(value, dict) else {}
    row.value = value
    row.issued_at = _moment(members.get("issued_at"))
    row.expires_at = _earliest(row.expires_at, _moment(members.get("expires_at")))
    row.valid_until = _earliest(row.expires_at, _ends_at(proof))


def _disclosed(proof: VerifiedCredential | None, identity: LinkedIdentity) -> dict[str, Any]:
    """The claims of the credential that can be stored, and that ``KEEP_CLAIMS`` does not drop."""
    proven = proof.claims_as_json() if proof else {}
    return {
        name: value
        for name, value in proven.items()
        if _is_storable(name, value) and _is_kept(name, identity)
    }


def _is_kept(claim_type: str, identity: LinkedIdentity) -> bool:
    kept = conf.application(identity.application).keep_claims
    return kept is None or claim_type in kept


def _mismatched(answer: ClaimsAnswer, disclosed: Mapping[str, Any]) -> set[str]:
    """Disclosed claims that the answer lists as valid, but by none of the named provider."""
    found = set()
    for name, value in disclosed.items():
        named = _provider_in(value)
        listed = [each for each in answer.claims if each.claim_type == name]
        is_valid = any(not each.revoked for each in listed)
        is_named = any(each.provider == named for each in listed)
        if named is not None and is_valid and not is_named:
            found.add(name)
    return found


def _unlisted(answer: ClaimsAnswer, disclosed: Mapping[str, Any]) -> Iterator[ListedClaim]:
    """What the credential discloses beyond the list."""
    for name in disclosed.keys() - {listed.claim_type for listed in answer.claims}:
        named = str(_provider_in(disclosed[name]) or "")
        provider = without_controls(named[:LONGEST_NAME])
        yield ListedClaim(name, provider=provider, revoked=False, proof_hash="", expires_at=None)


def _provider_in(value: object) -> object:
    """The provider that a disclosed value names, or None."""
    return value.get("provider") if isinstance(value, dict) else None


def _is_storable(name: str, value: object) -> bool:
    """PostgreSQL cannot store NUL, and pages show no control characters.

    A claim that cannot be stored opens no gate.
    """
    return len(name) <= LONGEST_NAME and name.isprintable() and "\\u0000" not in json.dumps(value)


def _moment(text: object) -> datetime | None:
    """A time-stamp in a claim's value. An unreadable one counts as long past."""
    if text is None:
        return None
    try:
        return parse_moment(text, takes_days=True) if isinstance(text, str) else NEVER
    except NotAMoment:
        return NEVER


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _key(row: StoredClaim) -> Key:
    return row.claim_type, row.provider


def _content(row: StoredClaim) -> tuple[Key, str, datetime | None, bool]:
    """What a gate sees. As text, because in Python ``True`` equals ``1``, but not for a gate."""
    value = json.dumps(row.value, sort_keys=True)
    return _key(row), value, row.revoked_at, row.valid_until is None


def _revoked_at(
    before: StoredClaim, after: StoredClaim, issued_at: datetime | None
) -> datetime | None:
    """A revoked claim counts again only by a credential that was issued after its revocation.

    Both times are the service's. A credential may name whole seconds only.
    """
    if before.revoked_at is None or after.revoked_at is not None:
        return before.revoked_at or after.revoked_at
    is_later = issued_at is not None and issued_at >= before.revoked_at.replace(microsecond=0)
    return None if is_later else before.revoked_at


def revoke_listed(identity: LinkedIdentity, answer: ClaimsAnswer) -> None:
    """Revoke the claims that the answer lists as revoked, whatever else is wrong with it."""
    revoked = {(listed.claim_type, listed.provider) for listed in answer.claims if listed.revoked}
    standing = StoredClaim.objects.filter(identity_id=identity.pk, revoked_at=None)
    hit = [row.pk for row in standing if _key(row) in revoked] if revoked else []
    if hit:
        with database.atomic():
            LinkedIdentity.objects.filter(pk=identity.pk).change()
            StoredClaim.objects.filter(pk__in=hit).update(revoked_at=timezone.now())
        identity.version += 1
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def _issued_at(proof: VerifiedCredential | None) -> datetime | None:
    return None if proof is None or proof.issued_at is None else bounded(proof.issued_at)


def _ends_at(proof: VerifiedCredential) -> datetime:
    """Whatever the credential says, it counts for 24 hours at most."""
    return min(proof.expires_at, timezone.now() + CREDENTIAL_LIFETIME)
