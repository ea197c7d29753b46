"""Claims: what the service lists, believed only as far as its credential proves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.debug import sensitive_variables

from django_identity import signals, vault
from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential, verify
from django_identity.exceptions import CredentialRejected, SubjectMismatch
from django_identity.lifecycle import key_sets
from django_identity.models import LinkedIdentity, StoredClaim
from django_identity.service.messages import ClaimsAnswer, ListedClaim

CREDENTIAL_LIFETIME = timedelta(hours=24)
CLOCK_LEEWAY = 30.0
DUE_AT_SHARE = 0.75
DUE_SPREAD = 0.10


@sensitive_variables()
def verified(
    application: Application, answer: ClaimsAnswer, *, subject: str
) -> VerifiedCredential | None:
    """The proof in a claims response of ``subject``, if there is one.

    An unknown ``kid`` asks for newer keys once. Raises ``SubjectMismatch``, ``CredentialRejected``
    or ``KeysUnavailable``.
    """
    if answer.user_id != subject:
        raise SubjectMismatch("about another subject", endpoint="claims")
    if answer.credential is None:
        return None
    keys = key_sets.current(application)
    try:
        return _verify(application, answer.credential, subject=subject, keys=keys)
    except CredentialRejected as rejected:
        if rejected.reason is not RejectionReason.KEY:
            raise
        newer = key_sets.refreshed(application, unknown_in=keys)
        if newer is keys:
            raise
    return _verify(application, answer.credential, subject=subject, keys=newer)


def _verify(
    application: Application, credential: str, *, subject: str, keys: KeySet
) -> VerifiedCredential:
    return verify(
        credential,
        keys=keys,
        issuer=application.api_origin,
        audience=application.client_id,
        environment=application.environment,
        subject=subject,
        leeway=CLOCK_LEEWAY,
    )


@sensitive_variables()
def store(
    application: Application,
    identity: LinkedIdentity,
    answer: ClaimsAnswer,
    proof: VerifiedCredential | None,
) -> None:
    """Replace the identity's claims by those of ``answer``, and set its credential's columns.

    The caller saves the identity. A credential older than the stored one is not taken: it could be
    a replay of a claim revoked since; what the answer says is revoked is revoked all the same.
    """
    if proof is not None and _is_older(proof, identity):
        revoked = [listed.claim_type for listed in answer.claims if listed.revoked]
        identity.claims.filter(claim_type__in=revoked).update(revoked=True)
        return
    now = timezone.now()
    ends_at = min(proof.expires_at, now + CREDENTIAL_LIFETIME) if proof else None
    identity.credential_issued_at = proof.issued_at if proof else None
    identity.credential_expires_at = ends_at
    identity.credential = _sealed(application, identity, answer) if proof else ""
    identity.refetch_due_at = _due_at(identity, now=now, ends_at=ends_at or now)
    identity.claims.all().delete()
    StoredClaim.objects.bulk_create(_stored(identity, answer, proof), ignore_conflicts=True)
    signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def _is_older(proof: VerifiedCredential, identity: LinkedIdentity) -> bool:
    stored = identity.credential_issued_at
    return stored is not None and proof.issued_at is not None and proof.issued_at < stored


def _sealed(application: Application, identity: LinkedIdentity, answer: ClaimsAnswer) -> str:
    context = identity.sealing_context("credential")
    return vault.seal(answer.credential or "", keys=application.encryption_keys, context=context)


def _due_at(identity: LinkedIdentity, *, now: datetime, ends_at: datetime) -> datetime:
    """At about three quarters of what is left, a fixed bit earlier or later for each identity."""
    position = int(identity.subject_digest[:8], 16) / 0xFFFFFFFF
    share = DUE_AT_SHARE + DUE_SPREAD * (2 * position - 1)
    return now + (ends_at - now) * share


def _stored(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> Iterator[StoredClaim]:
    """One row for each listed claim, then one for each proven claim that the list leaves out."""
    disclosed = proof.claims_as_json() if proof else {}
    for listed in answer.claims:
        yield _row(identity, listed, disclosed, proof)
    for claim_type in disclosed.keys() - {listed.claim_type for listed in answer.claims}:
        unlisted = ListedClaim(
            claim_type=claim_type,
            provider=str(_member(disclosed[claim_type], "provider") or ""),
            revoked=False,
            proof_hash="",
            expires_at=None,
        )
        yield _row(identity, unlisted, disclosed, proof)


def _row(
    identity: LinkedIdentity,
    listed: ListedClaim,
    disclosed: Mapping[str, object],
    proof: VerifiedCredential | None,
) -> StoredClaim:
    value = disclosed.get(listed.claim_type)
    is_proven = listed.claim_type in disclosed and _same_provider(value, listed.provider)
    expires_at = _earliest(listed.expires_at, _moment(value, "expires_at"))
    return StoredClaim(
        identity=identity,
        claim_type=listed.claim_type,
        provider=listed.provider,
        value=value if is_proven else None,
        proof_hash=listed.proof_hash,
        issued_at=_moment(value, "issued_at") if is_proven else None,
        expires_at=expires_at,
        valid_until=_earliest(expires_at, identity.credential_expires_at) if is_proven else None,
        revoked=listed.revoked,
    )


def _same_provider(value: object, provider: str) -> bool:
    """A value that names its provider proves that provider's claim and no other."""
    named = _member(value, "provider")
    return named is None or named == provider


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _moment(value: object, name: str) -> datetime | None:
    """A time-stamp in a claim's value; one that cannot be read counts as long past."""
    text = _member(value, name)
    if text is None:
        return None
    try:
        moment = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return datetime.fromtimestamp(0, tz=UTC)
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=UTC)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
