"""Re-fetch the claims and the KYC level of a person, and store only what is proven.

A claim needs a credential that proves it. A KYC level comes from the service's own answer.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, exceptions, signals
from django_identity.lifecycle.upkeep import key_sets, replacement
from django_identity.lifecycle.upkeep.tokens import Reader
from django_identity.models import Consent, LinkedIdentity, TokenGrant
from django_identity.service import ServiceClient, backoff, budget
from django_identity.service.answers import ClaimsAnswer, KycStatus
from django_identity.telemetry import LogEvent, log_failure

CLAIMS_SCOPE = "claims:read"
LEVEL_CHECKED_EVERY = timedelta(hours=24)
FIRST_BACKOFF = 60.0
LONGEST_BACKOFF = 6 * 3600.0
NOT_NOW = (exceptions.BudgetSpent, exceptions.ServiceAway, exceptions.RateLimited)
TRY_LATER = (exceptions.KeysUnavailable, exceptions.RefreshPending)

#: Nothing is known of the person's KYC.
NO_LEVEL: Mapping[str, Any] = {
    "kyc_level": "",
    "kyc_status": "",
    "kyc_provider": "",
    "kyc_verified_at": None,
    "kyc_checked_at": None,
}


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
def refetch(
    identity: LinkedIdentity,
    *,
    client: ServiceClient | None = None,
    grant: TokenGrant | None = None,
) -> Refetched:
    """Re-read the claims of ``identity``, and its KYC level if due, and store what is proven.

    It costs at most one refresh and two reads, unless a token is refused before its expiry.
    ``identity`` is a row that was just read, and so is its ``grant``, if given. If its consent, due
    date or credential has changed in the database since, the answer is discarded. The result is
    written to the row. An answer that fails a check may only revoke. Must run outside any
    transaction.
    """
    application = conf.application(identity.application)
    if not (may_read_claims(identity) or replacement.may_read_level(identity)):
        _conclude(identity, refetch_due_at=None)
        return Refetched.NOTHING_TO_FETCH
    sender = client or ServiceClient(application, priority=budget.Priority.UPKEEP)
    try:
        return _refetch(Reader(application, identity, sender, grant=grant))
    except exceptions.IdentityError as error:
        outcome = _excuse(application, error)
        if outcome is None:
            return _note_error(identity, error)
        columns: dict[str, Any] = {"last_error": error.code}
        if outcome is Refetched.REAUTHORIZATION_NEEDED:
            columns["refetch_due_at"] = None
        elif outcome is Refetched.NOT_NOW and not isinstance(error, NOT_NOW):
            # The service is down. Postpone the row anyway: if it is the cause after all, the next
            # probe must use another row.
            columns["refetch_due_at"] = backed_off(0)
        _conclude(identity, **columns)
        return outcome


def may_read_claims(identity: LinkedIdentity) -> bool:
    """Whether the person's consent is granted and covers claims."""
    covers = not identity.scopes or CLAIMS_SCOPE in identity.scopes
    return identity.consent == Consent.GRANTED and covers


@sensitive_variables()
def _refetch(reader: Reader) -> Refetched:
    """Read the level first, because it needs no key set. Neither failure stops the other read."""
    application, identity = reader.application, reader.identity
    reads_claims = may_read_claims(identity)
    failure = _check_kyc(reader) if _is_level_due(application, identity) else None
    if reads_claims:
        # Before any token is spent: without keys no answer can be verified.
        key_sets.current(application)
        subject, client = identity.subject, reader.client
        answer = reader.read(lambda token: client.claims(subject, access_token=token))
        return _take(reader, answer, failure)
    if failure is not None:
        return _note_error(identity, failure)
    due_at = replacement.next_refetch(application, identity, claims_due_at=None)
    written = _conclude(identity, refetch_failures=0, last_error="", refetch_due_at=due_at)
    return Refetched.STORED if written else Refetched.OVERTAKEN


def columns_of_level(answer: KycStatus, *, checked_at: datetime) -> dict[str, Any]:
    """The columns that the answer changes. ``checked_at``: when the service was asked."""
    return {
        "kyc_level": answer.kyc_level,
        "kyc_status": answer.status,
        "kyc_provider": answer.provider,
        "kyc_verified_at": answer.verified_at,
        "kyc_checked_at": checked_at,
    }


def _is_level_due(application: conf.Application, identity: LinkedIdentity) -> bool:
    """Whether this re-fetch must read the level: once a day, and after an event questioned it."""
    if not replacement.may_read_level(identity):
        return False
    if identity.kyc_checked_at is None or identity.kyc_rank:
        return True
    every = min(LEVEL_CHECKED_EVERY, application.kyc_holds / 2)
    return identity.kyc_checked_at <= timezone.now() - every


@sensitive_variables()
def _check_kyc(reader: Reader) -> exceptions.IdentityError | None:
    """Read the level and store it at once. Returns a failure that concerns only the level."""
    asked_at, identity, client = timezone.now(), reader.identity, reader.client
    try:
        answer = reader.read(lambda token: client.kyc(identity.subject, access_token=token))
    except exceptions.IdentityError as error:
        if _excuse(reader.application, error):
            raise
        return error
    before = (identity.kyc_level, identity.kyc_status)
    columns = columns_of_level(answer, checked_at=asked_at)
    # Events that happened before this moment are older than the answer.
    columns |= {"kyc_changed_at": max(identity.kyc_changed_at, asked_at), "kyc_rank": ""}
    if _unchanged(identity).update(updated_at=timezone.now(), **columns):
        for name, value in columns.items():
            setattr(identity, name, value)
        if (identity.kyc_level, identity.kyc_status) != before:
            signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    return None


def _excuse(application: conf.Application, error: exceptions.IdentityError) -> Refetched | None:
    """The result of the re-fetch if the identity is not the cause of ``error``."""
    if isinstance(error, exceptions.ReauthorizationNeeded):
        return Refetched.REAUTHORIZATION_NEEDED
    if isinstance(error, TRY_LATER):
        return Refetched.POSTPONED
    if isinstance(error, NOT_NOW) or budget.is_everybodys(application, error):
        return Refetched.NOT_NOW
    return None


@sensitive_variables()
def _take(
    reader: Reader, answer: ClaimsAnswer, failure: exceptions.IdentityError | None
) -> Refetched:
    """Store ``answer`` if it is proven and the row is unchanged; else only its revocations.

    ``failure``: the failure of the KYC check before, which must be retried soon.
    """
    application, identity = reader.application, reader.identity
    try:
        proof = key_sets.verify_answer(application, answer, subject=identity.subject)
    except exceptions.CredentialRejected:
        replacement.write(identity, replacement.Replacement(answer))
        raise
    if replacement.is_stale(identity, answer, proof):
        replacement.write(identity, replacement.Replacement(answer))
        raise exceptions.MalformedAnswer("no credential, or an older one", endpoint="claims")
    new = replacement.prepare(application, identity, answer, proof)
    columns = {"refetch_failures": 0, "last_error": "", **new.columns}
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


def _note_error(identity: LinkedIdentity, error: exceptions.IdentityError) -> Refetched:
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
    let_go = {"refetch_taken_until": None, "refetch_started": False, "updated_at": timezone.now()}
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
