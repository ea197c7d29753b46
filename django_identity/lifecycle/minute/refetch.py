"""One re-fetch: read the level and the claims of a person, verify them, store what is proven.

``fetch`` is the whole of it, and the functions below it stand in its order. A claim needs a
credential that proves it; a KYC level comes from the service's own answer. ``due`` has the date of
the next re-fetch, also after a failure.
"""

from typing import Any, NamedTuple

from django.utils import timezone

from django_identity import database, exceptions
from django_identity.lifecycle.ground import kyc
from django_identity.lifecycle.ground.verified import VerifiedAnswer
from django_identity.lifecycle.said import claims, due, key_sets
from django_identity.lifecycle.said.tokens import Reader
from django_identity.models import LinkedIdentity
from django_identity.models.choices import Columns

#: The service takes no calls of upkeep, or rejects the application itself.
NOT_NOW = (exceptions.RateLimited, exceptions.ClientRejected)


class LevelRead(NamedTuple):
    """The columns of the level (empty if it was not due), and why reading failed."""

    columns: Columns
    failure: exceptions.ServiceError | None = None


class Fetched(NamedTuple):
    """``is_stored``: the row is unchanged since it was read; else the answers are discarded.

    ``failure``: why reading the due level failed. The claims are read all the same.
    """

    is_stored: bool
    failure: exceptions.ServiceError | None = None


def fetch(identity: LinkedIdentity) -> Fetched:
    """Re-fetch level and claims of ``identity``, a row that was just read. Outside any transaction.

    It costs at most one refresh and two reads, unless a token is refused before its expiry. Raises
    the ``IdentityError`` of the first unusable answer; of such an answer only revocations are
    stored.
    """
    reader = Reader(identity)
    level = _read_level(reader)
    if level.columns and not _store(identity, level.columns, None):
        return Fetched(is_stored=False)

    found = _read_claims(reader)
    if found is None and level.failure is not None:
        raise level.failure
    if found is None and not level.columns:
        reader.token()  # A grant that nothing else uses is refreshed before it expires.

    columns: dict[str, Any] = {}
    if found is not None:
        columns |= claims.identity_columns(found, identity)
    # With a failure the caller notes when the next attempt is due.
    if level.failure is None:
        until = None
        if found is not None:
            until = found.lasts_until
        columns |= {
            "refetch_due_at": due.after_answers(identity, claims_until=until),
            "refetch_failures": 0,
            "refetch_failed_at": None,
            "last_error": "",
        }
    return Fetched(_store(identity, columns, found), level.failure)


# Read and verify


def _read_level(reader: Reader) -> LevelRead:
    """Read the level if it is due. A failure that concerns more than the level is raised."""
    identity = reader.identity
    client = reader.client
    asked_at = timezone.now()
    if not due.is_level_due(identity):
        return LevelRead({})

    try:
        answer = reader.read(
            lambda token: client.kyc(identity.subject, access_token=token),
        )
    except exceptions.ServiceError as error:
        # A failure of the token endpoint, or of the whole client, is not about the level alone.
        if error.endpoint != "kyc" or isinstance(error, NOT_NOW):
            raise
        return LevelRead({}, error)
    return LevelRead(kyc.level_columns(answer, said_at=asked_at))


def _read_claims(reader: Reader) -> VerifiedAnswer | None:
    """The answer and its verified credential; None unless the consent covers claims.

    An answer that fails a check may only revoke.
    """
    application = reader.application
    identity = reader.identity
    client = reader.client
    if not identity.allows(claims.SCOPE):
        return None

    # Before any token is spent: without keys no answer can be verified.
    key_sets.current(application)
    answer = reader.read(
        lambda token: client.claims(identity.subject, access_token=token),
    )
    try:
        proof = key_sets.verify_answer(application, answer, subject=identity.subject)
        verified = VerifiedAnswer(answer, proof)
        if not claims.is_usable(verified, identity):
            raise exceptions.MalformedAnswer(
                "no credential, or an older one",
                endpoint="claims",
            )
    except (exceptions.CredentialRejected, exceptions.MalformedAnswer):
        claims.revoke_listed(identity, answer)
        raise
    return verified


# Store: the row of the identity, then its claims


def _store(
    identity: LinkedIdentity,
    columns: Columns,
    found: VerifiedAnswer | None,
) -> bool:
    """Write all, or nothing if somebody has changed the row since it was read."""
    before = identity.kyc_state
    is_behind = False
    with database.atomic():
        written = LinkedIdentity.objects.change_unchanged(identity, **columns)
        if written and found is not None:
            rows = claims.write(identity, found)
            is_behind = claims.is_behind(rows, found)
    if not written:
        return False
    identity.take_over(columns)
    if is_behind:
        soon = {"refetch_due_at": timezone.now() + due.SOONEST}
        if LinkedIdentity.objects.change_unchanged(identity, **soon):
            identity.take_over(soon)
    kyc.announce_change(identity, before=before)
    return True
