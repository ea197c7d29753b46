"""What a claims answer changes: the rows of the claims, and the two dates of the newest credential.

A re-fetch and a sign-in store claims by these functions. A row gets ``valid_until`` only if the
verified credential discloses the claim, of its provider (``_proves``). What else a gate demands of
it: ``ground.values``. Of the credential itself nothing is stored but these values and dates.

An attacker, or a cache, may hand in an old answer with a genuine credential. So dates are compared,
as ``ground.clocks`` says:

- An answer is old if its credential was issued before the stored one (``credential_issued_at``). Of
  an old answer only revocations are taken (``is_usable``, ``revoke_listed``).
- A revoked claim counts again only by a credential that was issued after its revocation
  (``_revoked_at``). So a revoked row stays while an answer does not list it (``_is_remembered``),
  and a claim without a row is compared with the stored events (``revoke_new``).
- The same answer again leaves all as it is, and nobody is told.

An old answer counts as a failed re-fetch (``due.retry``). A sign-in with an old answer succeeds and
leaves the stored claims, and a re-fetch is due at once (``arrivals``). If the credential fails a
check, a re-fetch treats the answer as an old one. A sign-in whose claims could not be read or
verified empties the stored ones.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from django_identity import conf, database, signals
from django_identity.conf.rules import CLAIMS_SCOPE
from django_identity.credentials import VerifiedCredential
from django_identity.event_types import Effect, kind_of, types_of
from django_identity.lifecycle.ground import clocks, values
from django_identity.lifecycle.ground.verified import VerifiedAnswer
from django_identity.lifecycle.ground.withdrawal import NO_VALUE
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.service.answers import ClaimsAnswer, ListedClaim
from django_identity.service.members import LONGEST_NAME, without_controls
from django_identity.service.webhooks import NamedClaim
from django_identity.strict_json import JSONObject

#: The scope that covers claims.
SCOPE = CLAIMS_SCOPE
#: The columns of a stored claim that an answer changes.
WRITTEN = (*NO_VALUE, "revoked_at")

#: So long after a revocation an answer that is dated before it is asked for again soon.
BEHIND_FOR = timedelta(hours=1)

Key = tuple[str, str]


# What an answer may change


def is_usable(verified: VerifiedAnswer, identity: LinkedIdentity) -> bool:
    """Whether the answer may replace the stored claims.

    An answer without a credential is usable if all claims that it lists are revoked. An answer
    with an older credential could replay a claim that was revoked since. An unusable answer may
    only revoke: see ``revoke_listed``.
    """
    if verified.proof is None:
        return all(listed.revoked for listed in verified.answer.claims)
    newest_at = identity.credential_issued_at
    if verified.issued_at is None or newest_at is None:
        return True
    return verified.issued_at >= newest_at


def identity_columns(
    verified: VerifiedAnswer,
    identity: LinkedIdentity,
) -> dict[str, Any]:
    """The columns of the identity: the dates of the credential. Older credentials are refused.

    An answer whose credential is missing is younger than the stored credential. It ends all
    claims, so the stored credential is refused from then on, too: a cache may still have it.
    """
    newest_at = identity.credential_issued_at
    if verified.proof is None:
        if newest_at is not None and identity.credential_expires_at is not None:
            newest_at += clocks.A_SECOND
        return {"credential_expires_at": None, "credential_issued_at": newest_at}
    columns = {"credential_expires_at": clocks.end_of(verified.proof)}
    if verified.issued_at is not None:
        columns["credential_issued_at"] = verified.issued_at
    return columns


def write(
    identity: LinkedIdentity,
    verified: VerifiedAnswer,
    *,
    heard: Iterable[WebhookEvent] | None = None,
) -> list[StoredClaim]:
    """Replace the stored claims by the answer's, and announce it if their content has changed.

    ``heard``: the subject's events, at least those that revoke claims, if the caller has read them.
    Returns the rows that are stored then. The caller has written or locked the row of the identity
    in this transaction, as every writer does first. Keys are compared in Python, because collations
    may ignore case.
    """
    wanted = rows_of(identity, verified)
    rows = list(wanted.values())
    _log_unproven(identity, verified, rows)
    stored: list[StoredClaim] = []
    if not identity.is_new:
        stored = list(identity.claims.all())
    contents = {*map(_content, stored)}
    newest_at = verified.issued_at or identity.credential_issued_at
    gone: list[int] = []
    for before in stored:
        row = wanted.get(_key(before))
        if row is None:
            if _is_remembered(before, newest_at):
                before.set_columns(NO_VALUE)
                rows.append(before)
            else:
                gone.append(before.pk)
            continue
        row.pk = before.pk
        row.revoked_at = _revoked_at(before, row, verified.issued_at)

    if gone:
        StoredClaim.objects.filter(pk__in=gone).delete()
    _update([row for row in rows if row.pk])
    new = [row for row in rows if not row.pk]
    if new and heard is None:
        heard = WebhookEvent.objects.filter(
            subject_digest=identity.subject_digest,
            event_type__in=types_of(Effect.REVOKE_CLAIM),
        )
    revoke_new(new, heard or (), verified.issued_at)
    # Under the lock only two keys conflict that are equal by this database's collation alone.
    StoredClaim.objects.bulk_create(new, ignore_conflicts=True)

    if contents != {*map(_content, rows)}:
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return rows


def is_behind(rows: Iterable[StoredClaim], verified: VerifiedAnswer) -> bool:
    """Whether a claim stays revoked in ``rows`` that the answer lists, and does not revoke.

    Its credential is dated before the revocation: by the service's clock, by custom, or by a cache.
    Only for an hour after the revocation, because some credentials never say anything younger.
    """
    listed = {_key(each) for each in verified.answer.claims}
    listed -= {_key(each) for each in verified.answer.claims if each.revoked}
    lately = timezone.now() - BEHIND_FOR
    revoked = [row for row in rows if row.revoked_at and row.revoked_at > lately]
    return any(_key(row) in listed for row in revoked)


def _update(rows: list[StoredClaim]) -> None:
    """Write these rows, which are stored, by their keys, in one statement.

    ``bulk_update`` would send a CASE over all rows for each column, which takes ten times as long.
    """
    StoredClaim.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=WRITTEN,
        unique_fields=database.conflict_columns("id"),
    )


def revoke_listed(identity: LinkedIdentity, answer: ClaimsAnswer) -> None:
    """Revoke the claims that the answer lists as revoked, whatever else is wrong with it."""
    revoked = {_key(listed) for listed in answer.claims if listed.revoked}
    if not revoked:
        return
    unrevoked = identity.claims.filter(revoked_at=None)
    ended = [row.pk for row in unrevoked if _key(row) in revoked]
    if not ended:
        return

    with database.atomic():
        # The identity first, as every writer. Its new version also discards a running re-fetch,
        # whose older answer would prove the claims again.
        identity.change()
        revoked_at = clocks.after_credential(
            timezone.now(),
            identity.credential_issued_at,
        )
        StoredClaim.objects.filter(pk__in=ended).update(revoked_at=revoked_at)
    signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


# The rows of the claims


def rows_of(
    identity: LinkedIdentity,
    verified: VerifiedAnswer,
) -> dict[Key, StoredClaim]:
    """One row for each listed claim, and one for each other proven claim.

    A claim that is listed twice is revoked if one of the two entries is revoked.
    """
    answer = verified.answer
    proof = verified.proof
    disclosed = _disclosed(proof, identity)
    newest_at = verified.issued_at or identity.credential_issued_at
    revoked_at = clocks.after_credential(timezone.now(), newest_at)
    rows: dict[Key, StoredClaim] = {}
    for listed in (*answer.claims, *_unlisted(answer, disclosed)):
        if not _is_kept(listed.claim_type, identity):
            continue
        row = StoredClaim(
            identity=identity,
            claim_type=listed.claim_type,
            provider=listed.provider,
            proof_hash=listed.proof_hash,
            expires_at=listed.expires_at,
        )
        if proof is not None and listed.claim_type in disclosed:
            value = disclosed[listed.claim_type]
            if _proves(value, listed):
                _prove(row, value, proof)
        first = rows.setdefault(_key(row), row)
        # A later entry revokes the first one, too: the order must not bring a revoked claim back.
        if listed.revoked:
            first.revoked_at = revoked_at
    return rows


def _proves(value: object, listed: ListedClaim) -> bool:
    """Whether a disclosed value proves the listed claim.

    A value that names a provider proves this provider's claim alone. Without a provider it proves
    each claim of its type, but for revoked ones.
    """
    named = values.provider_in(value)
    if named is None:
        return not listed.revoked
    return named == listed.provider


def _prove(row: StoredClaim, value: Any, proof: VerifiedCredential) -> None:
    """Proven claims are valid until the credential's end at the latest."""
    members: JSONObject = {}
    if isinstance(value, dict):
        members = value
    row.value = value
    row.issued_at = values.moment_in(members.get("issued_at"))
    row.expires_at = _earliest(
        row.expires_at,
        values.moment_in(members.get("expires_at")),
    )
    row.valid_until = _earliest(row.expires_at, clocks.end_of(proof))


def _log_unproven(
    identity: LinkedIdentity,
    verified: VerifiedAnswer,
    rows: list[StoredClaim],
) -> None:
    """Log the claims that are listed and disclosed, but of different providers."""
    listed = {each.claim_type for each in verified.answer.claims if not each.revoked}
    proven = {row.claim_type for row in rows if row.valid_until is not None}
    unproven = listed.intersection(_disclosed(verified.proof, identity)) - proven
    if unproven:
        log(
            LogEvent.CLAIMS_UNPROVEN,
            level=logging.WARNING,
            identity=identity.pk,
            claims=",".join(sorted(unproven)),
        )


def _disclosed(
    proof: VerifiedCredential | None,
    identity: LinkedIdentity,
) -> JSONObject:
    """The storable claims of the credential within ``KEEP_CLAIMS``."""
    if proof is None:
        return {}
    return {
        name: value
        for name, value in proof.claims_as_json().items()
        if values.is_storable(name, value) and _is_kept(name, identity)
    }


def _is_kept(claim_type: str, identity: LinkedIdentity) -> bool:
    kept = conf.application().keep_claims
    return kept is None or claim_type in kept


def _unlisted(answer: ClaimsAnswer, disclosed: JSONObject) -> Iterator[ListedClaim]:
    """What the credential discloses beyond the list."""
    listed_names = {listed.claim_type for listed in answer.claims}
    for name in disclosed.keys() - listed_names:
        named = str(values.provider_in(disclosed[name]) or "")
        provider = without_controls(named[:LONGEST_NAME])
        yield ListedClaim(
            name,
            provider=provider,
            revoked=False,
            proof_hash="",
            expires_at=None,
        )


def _key(claim: StoredClaim | ListedClaim) -> Key:
    return claim.claim_type, claim.provider


def _content(row: StoredClaim) -> tuple[Key, str, datetime | None, bool]:
    """What a gate sees. As text: in Python ``True`` equals ``1``, and for a gate the two differ."""
    value = json.dumps(row.value, sort_keys=True)
    return _key(row), value, row.revoked_at, row.valid_until is None


# Times


def _revoked_at(
    before: StoredClaim,
    after: StoredClaim,
    issued_at: datetime | None,
) -> datetime | None:
    """A revoked claim counts again only by a credential that was issued after its revocation.

    The revocation has the time of an event, or of the answer that listed it; ``clocks`` moved
    either to a second later than the credential stored then.
    """
    if before.revoked_at is None:
        return after.revoked_at
    if after.revoked_at is not None:
        # Listed as revoked again. It has been so since the first time.
        return before.revoked_at
    if clocks.is_younger(issued_at, before.revoked_at):
        return None
    return before.revoked_at


def revoke_new(
    rows: Iterable[StoredClaim],
    heard: Iterable[WebhookEvent],
    issued_at: datetime | None,
) -> None:
    """Revoke those of the new ``rows`` that an event has revoked since the credential was issued.

    No stored row remembers such a revocation. An event without content revokes all of them.
    """
    for event in heard:
        if kind_of(event.event_type).effect is not Effect.REVOKE_CLAIM:
            continue
        since = clocks.revoked_from(event.occurred_at, issued_at=issued_at)
        named = NamedClaim.parse(event.payload).claim_type
        for row in rows:
            if named in ("", row.claim_type):
                row.revoked_at = row.revoked_at or since


def _is_remembered(before: StoredClaim, newest_at: datetime | None) -> bool:
    """Whether an unlisted claim stays as an empty row, because it was revoked.

    It stays until every credential from before its revocation is refused as too old. Otherwise such
    a credential, from a cache, would prove the claim again.
    """
    if before.revoked_at is None:
        return False
    return not clocks.is_younger(newest_at, before.revoked_at)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
