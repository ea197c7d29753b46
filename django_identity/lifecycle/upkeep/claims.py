"""Claims: what the service lists, believed only as far as its credential proves it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import backoff, conf
from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential, verify
from django_identity.exceptions import (
    AccessForbidden,
    AccessTokenRejected,
    BudgetSpent,
    CredentialRejected,
    IdentityError,
    KeysUnavailable,
    MalformedAnswer,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceAway,
    ServiceUnavailable,
    SubjectMismatch,
)
from django_identity.lifecycle.upkeep import key_sets, replacement, tokens
from django_identity.lifecycle.upkeep.tokens import HeldToken
from django_identity.models import Consent, LinkedIdentity
from django_identity.service import ServiceClient, outage
from django_identity.service.budget import Priority
from django_identity.service.messages import ClaimsAnswer
from django_identity.telemetry import LogEvent, log_failure

CLOCK_LEEWAY = 30.0
CLAIMS_SCOPE = "claims:read"
FIRST_BACKOFF = 60.0
LONGEST_BACKOFF = 6 * 3600.0
NOT_NOW = (BudgetSpent, ServiceAway, RateLimited)
TRY_LATER = (KeysUnavailable, RefreshPending)


class Refetched(StrEnum):
    """How a re-fetch ended. Only ``FAILED`` counts against the identity."""

    STORED = "stored"
    #: It is tried again after a pause that grows.
    FAILED = "failed"
    #: Nothing is wrong with the identity; it stays due.
    POSTPONED = "postponed"
    #: The service takes no calls at the moment, from anybody; it stays due.
    NOT_NOW = "not now"
    #: A revocation, an event or a sign-in came first; nothing of the answer was stored.
    OVERTAKEN = "overtaken"
    REAUTHORIZATION_NEEDED = "needs reauthorization"
    #: No consent, or none to read claims.
    NOTHING_TO_FETCH = "nothing to fetch"


@sensitive_variables()
def verify_answer(
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
        return verify_for(application, answer.credential, subject=subject, keys=keys)
    except CredentialRejected as rejected:
        if rejected.reason is not RejectionReason.KEY:
            raise
        newer = key_sets.refreshed(application, unknown_in=keys)
        if newer is keys:
            raise
    return verify_for(application, answer.credential, subject=subject, keys=newer)


def verify_for(
    application: Application,
    credential: str,
    *,
    subject: str | None,
    keys: KeySet,
    now: datetime | None = None,
) -> VerifiedCredential:
    """``credentials.verify`` with what the site expects of every credential of ``application``.

    ``now``: another moment than the present one. Raises ``CredentialRejected``.
    """
    return verify(
        credential,
        keys=keys,
        issuer=application.api_origin,
        audience=application.client_id,
        environment=application.environment,
        subject=subject,
        now=now or timezone.now(),
        leeway=CLOCK_LEEWAY,
    )


@sensitive_variables()
def refetch(identity: LinkedIdentity, *, client: ServiceClient | None = None) -> Refetched:
    """Read the claims of ``identity`` anew and store what its credential proves.

    Costs at most one refresh and one read, unless a token is refused before its time. ``identity``
    is a row as it was read just now: if consent, the due date or the credential have changed in the
    database since, what comes is thrown away. However it ends is written on the row; an answer that
    fails a check changes nothing but may revoke. Must run outside any transaction.
    """
    application = conf.application(identity.application)
    if not _has_claims(identity):
        _conclude(identity, refetch_due_at=None)
        return Refetched.NOTHING_TO_FETCH
    sender = client or ServiceClient(application, priority=Priority.UPKEEP)
    try:
        # Before anything is spent: without keys no answer can be believed.
        key_sets.current(application)
        answer = _read(identity, sender)
        return _take(application, identity, answer)
    except ReauthorizationNeeded as error:
        _conclude(identity, refetch_due_at=None, last_error=error.code)
        return Refetched.REAUTHORIZATION_NEEDED
    except NOT_NOW as error:
        _conclude(identity, last_error=error.code)
        return Refetched.NOT_NOW
    except TRY_LATER as error:
        _conclude(identity, last_error=error.code)
        return Refetched.POSTPONED
    except IdentityError as error:
        if isinstance(error, ServiceUnavailable) and outage.is_away(application):
            # Everybody's failure, so it is not counted; but if it is this identity's after all, the
            # next try must be another one's, or nobody would ever see that the service is there.
            _conclude(identity, refetch_due_at=backed_off(0), last_error=error.code)
            return Refetched.NOT_NOW
        return _note_error(identity, error)


def _has_claims(identity: LinkedIdentity) -> bool:
    may_read = not identity.scopes or CLAIMS_SCOPE in identity.scopes
    return identity.consent == Consent.GRANTED and may_read


@sensitive_variables()
def _read(identity: LinkedIdentity, client: ServiceClient) -> ClaimsAnswer:
    """The claims response. A token that is refused before its time is refreshed once.

    401 or 403 to a fresh token means that the person took the consent back.
    """
    held = tokens.current(identity, client=client)
    if not held.fresh:
        try:
            return client.claims(identity.subject, access_token=held.value)
        except (AccessTokenRejected, AccessForbidden):
            held = tokens.current(identity, rejected=held.value, client=client)
    return _read_with_fresh(identity, client, held)


@sensitive_variables()
def _read_with_fresh(
    identity: LinkedIdentity, client: ServiceClient, held: HeldToken
) -> ClaimsAnswer:
    try:
        return client.claims(identity.subject, access_token=held.value)
    except (AccessTokenRejected, AccessForbidden) as refused:
        tokens.mark_dead(identity, generation=held.generation)
        raise ReauthorizationNeeded(f"a fresh token was refused: {refused.code}") from refused


@sensitive_variables()
def _take(application: Application, identity: LinkedIdentity, answer: ClaimsAnswer) -> Refetched:
    """Store ``answer`` if it is proven and nothing came before it; else only what it revokes."""
    try:
        proof = verify_answer(application, answer, subject=identity.subject)
    except CredentialRejected:
        replacement.write(identity, replacement.Replacement(answer))
        raise
    if _has_no_newer_proof(identity, answer, proof):
        replacement.write(identity, replacement.Replacement(answer))
        raise MalformedAnswer("no credential, or an older one", endpoint="claims")
    new = replacement.prepare(application, identity, answer, proof)
    with transaction.atomic():
        columns = {"refetch_failures": 0, "last_error": "", **new.columns}
        if not _conclude(identity, **columns):
            return Refetched.OVERTAKEN
        replacement.write(identity, new)
    return Refetched.STORED


def _has_no_newer_proof(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> bool:
    """Whether the stored proof is the better one: this one is older, or there is none.

    An answer that lists no standing claim needs no credential: everything is gone.
    """
    if proof is not None:
        return replacement.is_older(proof, identity)
    return any(not listed.revoked for listed in answer.claims)


def _note_error(identity: LinkedIdentity, error: IdentityError) -> Refetched:
    log_failure(LogEvent.REFETCH_FAILED, error, application=identity.application)
    note_failure(identity, code=error.code)
    return Refetched.FAILED


def note_failure(identity: LinkedIdentity, *, code: str) -> None:
    """Count a failure on the row and put the next try off."""
    failures = identity.refetch_failures + 1
    due_at = backed_off(failures)
    _conclude(identity, refetch_due_at=due_at, refetch_failures=failures, last_error=code)


def backed_off(failures: int) -> datetime:
    """When to try again after that many failures in a row: from 1 minute to 6 hours, by chance."""
    seconds = backoff.pause(failures, first=FIRST_BACKOFF, longest=LONGEST_BACKOFF)
    return timezone.now() + timedelta(seconds=seconds)


def _conclude(identity: LinkedIdentity, **columns: Any) -> bool:
    """Write how it ended and let the row go. False, and nothing is written, if it was overtaken.

    An event leaves its digest, a sign-in and another re-fetch move the due date.
    """
    now = timezone.now()
    row = LinkedIdentity.objects.filter(pk=identity.pk)
    unchanged = row.filter(
        consent=identity.consent,
        consent_changed_at=identity.consent_changed_at,
        revoked_at=identity.revoked_at,
        last_event_digest=identity.last_event_digest,
        refetch_due_at=identity.refetch_due_at,
    )
    let_go = {"refetch_taken_until": None, "refetch_started": False, "updated_at": now}
    written = unchanged.update(
        **{"refetch_failures": identity.refetch_failures, **let_go, **columns}
    )
    if not written and identity.refetch_taken_until is not None:
        row.filter(refetch_taken_until=identity.refetch_taken_until).update(**let_go)
    return bool(written)
