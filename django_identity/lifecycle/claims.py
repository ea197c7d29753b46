"""What a claims answer changes: the columns of the identity and the rows of its claims.

A re-fetch and a sign-in store claims by these functions. A claim is proven if the verified
credential discloses it: only then its row has ``valid_until``, and only then it opens a gate.
"""

import json
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
WRITTEN = (*NO_VALUE, "revoked_at")

Key = tuple[str, str]


def is_older(proof: VerifiedCredential | None, identity: LinkedIdentity) -> bool:
    """Whether ``proof`` is older than the stored credential: it could replay a revoked claim."""
    issued_at, held_at = _issued_at(proof), identity.credential_issued_at
    return issued_at is not None and held_at is not None and issued_at < held_at


def columns_of(proof: VerifiedCredential | None) -> dict[str, Any]:
    """When the newest one was issued stays known: an older one could replay a revoked claim."""
    issued_at, ends_at = _issued_at(proof), None if proof is None else _ends_at(proof)
    issued = {} if issued_at is None else {"credential_issued_at": issued_at}
    return {"credential_expires_at": ends_at, **issued}


def lasts_until(answer: ClaimsAnswer, proof: VerifiedCredential | None) -> datetime:
    """Until when the answer needs no other one: claims without a credential need one at once."""
    if proof is not None:
        return _ends_at(proof)
    return timezone.now() + (CREDENTIAL_LIFETIME if is_all_revoked(answer) else timedelta())


def is_all_revoked(answer: ClaimsAnswer) -> bool:
    """Whether the answer lists no valid claim, so that it needs no credential."""
    return all(listed.revoked for listed in answer.claims)


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
    StoredClaim.objects.filter(pk__in=gone).delete()
    StoredClaim.objects.bulk_update([row for row in wanted.values() if row.pk], WRITTEN)
    new = [row for row in wanted.values() if not row.pk]
    StoredClaim.objects.bulk_create(new, ignore_conflicts=True)
    if set(map(_content, held.values())) != set(map(_content, wanted.values())):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return list(wanted.values())


def rows_of(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> dict[Key, StoredClaim]:
    """One row for each listed claim, and one for each proven claim that is not listed.

    ``KEEP_CLAIMS`` drops the others. A claim that is listed twice is revoked if one of the two
    entries is revoked.
    """
    kept = conf.application(identity.application).keep_claims
    proven = proof.claims_as_json() if proof else {}
    disclosed = {name: value for name, value in proven.items() if _is_storable(name, value)}
    unlisted = disclosed.keys() - {listed.claim_type for listed in answer.claims}
    rows: dict[Key, StoredClaim] = {}
    for listed in (*answer.claims, *(_unlisted(name, disclosed[name]) for name in unlisted)):
        if kept is not None and listed.claim_type not in kept:
            continue
        is_disclosed = listed.claim_type in disclosed
        value = disclosed.get(listed.claim_type)
        row = _row(identity, listed, value, proof=proof if is_disclosed else None)
        earlier = rows.setdefault(_key(row), row)
        earlier.revoked_at = earlier.revoked_at or row.revoked_at
    return rows


def _row(
    identity: LinkedIdentity, listed: ListedClaim, value: object, proof: VerifiedCredential | None
) -> StoredClaim:
    """Proven claims are valid until the credential's end at the latest.

    A value proves the claim of the provider that it names; without one, every claim of its type but
    revoked ones.
    """
    members = value if isinstance(value, dict) else {}
    named = members.get("provider")
    proves = not listed.revoked if named is None else named == listed.provider
    row = StoredClaim(
        identity=identity,
        claim_type=listed.claim_type,
        provider=listed.provider,
        proof_hash=listed.proof_hash,
        expires_at=_earliest(listed.expires_at, _moment(members.get("expires_at"))),
        revoked_at=timezone.now() if listed.revoked else None,
    )
    if proof is not None and proves:
        row.value, row.issued_at = value, _moment(members.get("issued_at"))
        row.valid_until = _earliest(row.expires_at, _ends_at(proof))
    return row


def _unlisted(name: str, value: object) -> ListedClaim:
    named = value.get("provider") if isinstance(value, dict) else None
    provider = without_controls(str(named or "")[:LONGEST_NAME])
    return ListedClaim(name, provider=provider, revoked=False, proof_hash="", expires_at=None)


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
