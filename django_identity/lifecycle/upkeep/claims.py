"""Re-fetch the claims and the KYC level of a person, and store only what is proven.

A claim needs a credential that proves it. A KYC level comes from the service's own answer.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, signals
from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential, verify
from django_identity.exceptions import (
    BudgetSpent,
    ClientRejected,
    CredentialRejected,
    IdentityError,
    KeysUnavailable,
    MalformedAnswer,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceAway,
    SubjectMismatch,
)
from django_identity.lifecycle.upkeep import key_sets, kyc_checks, replacement
from django_identity.lifecycle.upkeep.reader import Reader
from django_identity.models import Consent, LinkedIdentity
from django_identity.service import ServiceClient, backoff, budget, refusals
from django_identity.service.budget import Priority
from django_identity.service.messages import ClaimsAnswer
from django_identity.telemetry import LogEvent, Operation, log_failure, measured

CLAIMS_SCOPE = "claims:read"
FIRST_BACKOFF = 60.0
LONGEST_BACKOFF = 6 * 3600.0
NOT_NOW = (BudgetSpent, ServiceAway, RateLimited)
TRY_LATER = (KeysUnavailable, RefreshPending)


class Refetched(StrEnum):
    """The result of a re-fetch. Only ``FAILED`` is counted as a failure of the identity."""

    STORED = "stored"
    #: It is retried after a growing pause.
    FAILED = "failed"
    #: The identity is not the cause. It stays due.
    POSTPONED = "postponed"
    #: The service takes no calls now. The identity stays due.
    NOT_NOW = "not now"
    #: A revocation, an event or a sign-in came first. Nothing of the answer was stored.
    OVERTAKEN = "overtaken"
    REAUTHORIZATION_NEEDED = "needs reauthorization"
    #: No consent, or no scope to read claims.
    NOTHING_TO_FETCH = "nothing to fetch"


@sensitive_variables()
def verify_answer(
    application: Application, answer: ClaimsAnswer, *, subject: str
) -> VerifiedCredential | None:
    """Verify the credential in a claims answer of ``subject``, if there is one.

    An unknown ``kid`` refreshes the key set once. Raises ``SubjectMismatch``,
    ``CredentialRejected`` or ``KeysUnavailable``.
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
    return verify_for(application, answer.credential, subject=subject, keys=newer)


def verify_for(
    application: Application,
    credential: str,
    *,
    subject: str | None,
    keys: KeySet,
    now: datetime | None = None,
) -> VerifiedCredential:
    """Call ``credentials.verify`` with the settings of ``application``.

    ``now``: the time to verify at, by default the current time. Raises ``CredentialRejected``.
    """
    with measured(Operation.VERIFICATION, application=application.alias) as measurement:
        try:
            return verify(
                credential,
                keys=keys,
                issuer=application.api_origin,
                audience=application.client_id,
                environment=application.environment,
                subject=subject,
                now=now or timezone.now(),
                leeway=key_sets.CLOCK_LEEWAY,
            )
        except CredentialRejected as rejected:
            measurement.attributes["reason"] = rejected.reason.value
            raise


@sensitive_variables()
def refetch(identity: LinkedIdentity, *, client: ServiceClient | None = None) -> Refetched:
    """Re-read the claims of ``identity``, and its KYC level if due, and store what is proven.

    It costs at most one refresh and two reads, unless a token is refused before its expiry.
    ``identity`` is a row that was just read. If its consent, due date or credential has changed in
    the database since, the answer is discarded. The result is written to the row. An answer that
    fails a check may only revoke. Must run outside any transaction.
    """
    application = conf.application(identity.application)
    if not (may_read_claims(identity) or kyc_checks.may_check(identity)):
        _conclude(identity, refetch_due_at=None)
        return Refetched.NOTHING_TO_FETCH
    sender = client or ServiceClient(application, priority=Priority.UPKEEP)
    try:
        return _refetch(application, identity, Reader(identity, sender))
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
        if _is_everybodys(application, error):
            # The service is down, so do not count a failure. Postpone the row anyway: if it is the
            # cause after all, the next probe must use another row.
            _conclude(identity, refetch_due_at=backed_off(0), last_error=error.code)
            return Refetched.NOT_NOW
        return _note_error(identity, error)


def may_read_claims(identity: LinkedIdentity) -> bool:
    """Whether the person's consent is granted and covers claims."""
    covers = not identity.scopes or CLAIMS_SCOPE in identity.scopes
    return identity.consent == Consent.GRANTED and covers


@sensitive_variables()
def _refetch(application: Application, identity: LinkedIdentity, reader: Reader) -> Refetched:
    """Read the level first, because it needs no key set. Neither failure stops the other read."""
    failure = None
    if kyc_checks.is_due(application, identity):
        failure = _check_kyc(application, identity, reader)
    if may_read_claims(identity):
        # Before any token is spent: without keys no answer can be verified.
        key_sets.current(application)
        subject, client = identity.subject, reader.client
        answer = reader.read(lambda token: client.claims(subject, access_token=token))
        return _take(application, identity, answer, failure)
    if failure is not None:
        return _note_error(identity, failure)
    due_at = kyc_checks.next_refetch(application, identity, claims_due_at=None)
    written = _conclude(identity, refetch_failures=0, last_error="", refetch_due_at=due_at)
    return Refetched.STORED if written else Refetched.OVERTAKEN


@sensitive_variables()
def _check_kyc(
    application: Application, identity: LinkedIdentity, reader: Reader
) -> IdentityError | None:
    """Read the level and store it at once. Returns a failure that concerns only the level."""
    asked_at = timezone.now()
    subject, client = identity.subject, reader.client
    try:
        answer = reader.read(lambda token: client.kyc(subject, access_token=token))
    except (ReauthorizationNeeded, *NOT_NOW, *TRY_LATER):
        raise
    except IdentityError as error:
        if _is_everybodys(application, error):
            raise
        return error
    before = (identity.kyc_level, identity.kyc_status)
    columns = kyc_checks.columns_of(answer, checked_at=asked_at)
    # Events that happened before this moment are older than the answer.
    columns |= {"kyc_changed_at": max(identity.kyc_changed_at, asked_at), "kyc_rank": ""}
    if _unchanged(identity).update(updated_at=timezone.now(), **columns):
        for name, value in columns.items():
            setattr(identity, name, value)
        if (identity.kyc_level, identity.kyc_status) != before:
            signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    return None


def _is_everybodys(application: Application, error: IdentityError) -> bool:
    """Whether the service is down, so that the identity is not the cause of the failure."""
    concerns_all = isinstance(error, ClientRejected) or refusals.is_outage(error)
    return concerns_all and budget.is_away(application)


@sensitive_variables()
def _take(
    application: Application,
    identity: LinkedIdentity,
    answer: ClaimsAnswer,
    failure: IdentityError | None,
) -> Refetched:
    """Store ``answer`` if it is proven and the row is unchanged; else only its revocations.

    ``failure``: the failure of the KYC check before, which must be retried soon.
    """
    try:
        proof = verify_answer(application, answer, subject=identity.subject)
    except CredentialRejected:
        replacement.write(identity, replacement.Replacement(answer))
        raise
    if _has_no_newer_proof(identity, answer, proof):
        replacement.write(identity, replacement.Replacement(answer))
        raise MalformedAnswer("no credential, or an older one", endpoint="claims")
    new = replacement.prepare(application, identity, answer, proof)
    columns = {"refetch_failures": 0, "last_error": "", **new.columns}
    columns["refetch_due_at"] = kyc_checks.next_refetch(
        application, identity, claims_due_at=columns["refetch_due_at"]
    )
    if failure is not None:
        columns |= _columns_of_failure(identity, failure.code)
    with database.atomic():
        if not _conclude(identity, **columns):
            return Refetched.OVERTAKEN
        replacement.write(identity, new)
    if failure is None:
        return Refetched.STORED
    log_failure(LogEvent.REFETCH_FAILED, failure, application=identity.application)
    return Refetched.FAILED


def _has_no_newer_proof(
    identity: LinkedIdentity, answer: ClaimsAnswer, proof: VerifiedCredential | None
) -> bool:
    """Whether the stored credential is newer than the answer's, or the answer has none.

    An answer without valid claims needs no credential.
    """
    if proof is not None:
        return replacement.is_older(proof, identity)
    return any(not listed.revoked for listed in answer.claims)


def _note_error(identity: LinkedIdentity, error: IdentityError) -> Refetched:
    log_failure(LogEvent.REFETCH_FAILED, error, application=identity.application)
    note_failure(identity, code=error.code)
    return Refetched.FAILED


def note_failure(identity: LinkedIdentity, *, code: str) -> None:
    """Count a failure on the row and postpone the next attempt."""
    _conclude(identity, **_columns_of_failure(identity, code))


def _columns_of_failure(identity: LinkedIdentity, code: str) -> dict[str, Any]:
    failures = identity.refetch_failures + 1
    return {
        "refetch_due_at": backed_off(failures),
        "refetch_failures": failures,
        "last_error": code,
    }


def backed_off(failures: int) -> datetime:
    """The time of the next attempt: a random pause between 1 minute and 6 hours."""
    seconds = backoff.pause(failures, first=FIRST_BACKOFF, longest=LONGEST_BACKOFF)
    return timezone.now() + timedelta(seconds=seconds)


def _conclude(identity: LinkedIdentity, **columns: Any) -> bool:
    """Write the result and release the row. Returns False if the row has changed meanwhile."""
    let_go = {
        "refetch_taken_until": None,
        "refetch_started": False,
        "updated_at": timezone.now(),
    }
    written = _unchanged(identity).update(
        **{"refetch_failures": identity.refetch_failures, **let_go, **columns}
    )
    if not written and identity.refetch_taken_until is not None:
        row = LinkedIdentity.objects.filter(pk=identity.pk)
        row.filter(refetch_taken_until=identity.refetch_taken_until).update(**let_go)
    return bool(written)


def _unchanged(identity: LinkedIdentity) -> QuerySet[LinkedIdentity]:
    """The row, if no event, sign-in or other re-fetch has changed it since it was read.

    An event writes its digest; a sign-in and a re-fetch change the due date.
    """
    return LinkedIdentity.objects.filter(
        pk=identity.pk,
        consent=identity.consent,
        consent_changed_at=identity.consent_changed_at,
        revoked_at=identity.revoked_at,
        last_event_digest=identity.last_event_digest,
        refetch_due_at=identity.refetch_due_at,
    )
