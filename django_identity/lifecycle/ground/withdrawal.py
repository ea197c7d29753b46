"""The end of a consent (``revoke``) or of a link (``delete``): data goes, and the sessions end.

A revocation leaves the row of the identity with its subject and the date of its newest credential,
the rows of its claims without values, and the events. A deletion leaves of the events type, times
and digests (``retention``), and nothing else.

Every function works on an identity whose row the caller has locked, and runs in the caller's
transaction. ``waits_for_erasure`` says to which account nobody links.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.utils import timezone

from django_identity import database, signals
from django_identity.lifecycle.ground import kyc, retention, sessions
from django_identity.logs import LogEvent, log_trouble, models_in_the_way
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    RevokedBy,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from django_identity.models.choices import Columns
from django_identity.models.querysets import Changes

#: What a sign-in or a code brings, and the end of the consent empties. The date of the newest
#: credential stays: an older one, from a cache, could prove a claim that was revoked since.
NOTHING_BROUGHT: Columns = {
    **kyc.NO_LEVEL,
    "credential_expires_at": None,
    "scopes": [],
    "connect_issued_at": None,
    "connect_person": "",
    "refetch_due_at": None,
    "refetch_failures": 0,
    "refetch_failed_at": None,
    "last_error": "",
}
#: What goes with an identity.
CASCADING = (LinkedIdentity, TokenGrant, StoredClaim)
#: What is deleted by a statement alone, if the site's own code refuses: no row points at these.
RAW_DELETED = (TokenGrant, AuthorizationRequest)
#: The columns of a claim without a value. What is revoked stays revoked.
NO_VALUE: Columns = {
    "value": None,
    "proof_hash": "",
    "issued_at": None,
    "expires_at": None,
    "valid_until": None,
}


def revoke(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> bool:
    """End the consent at once. Returns whether the link is deleted.

    A link by code is deleted, because the code may be another person's. The row of an ``oauth``
    identity stays, without data: with it the owner can sign in again.
    """
    is_deleted = False
    if identity.connect_only:
        deletion = partial(delete, identity)
        is_deleted = try_deletion(deletion, LogEvent.DISCONNECT_FAILED, row=identity.pk)
    if not is_deleted:
        empty(identity, at=at, by=by)
        sessions.end_all(identity)
    signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return is_deleted


def try_deletion(
    deletion: Callable[[], object],
    failed: LogEvent,
    **facts: object,
) -> bool:
    """Delete an identity by ``deletion``, if the site's own rows and receivers let it pass.

    Returns whether they do. Else it is rolled back, and logged as ``failed``. What the database
    would refuse only at the commit is asked at once.
    """
    try:
        with database.atomic(), database.checked_references(*CASCADING):
            deletion()
    except Exception as error:
        # A lost connection takes the savepoint along, and so does a deadlock on MySQL. If it holds,
        # the error was the site's own, such as one of another database.
        if database.connection().needs_rollback:
            raise
        log_trouble(failed, error, models=models_in_the_way(error), **facts)
        return False
    return True


def empty(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> None:
    """Revoke the consent, and delete tokens, claims' values and level.

    By statements alone, because they send no signal: a receiver of the site that raises would keep
    the consent granted.
    """
    grants = TokenGrant.objects.filter(identity_id=identity.pk)
    grants._raw_delete(database.alias())  # noqa: SLF001  ``delete`` sends ``pre_delete``
    _empty_claims(identity)
    ended: Columns = {
        **NOTHING_BROUGHT,
        "consent": Consent.REVOKED,
        # Revocations arrive in any order. A late older one must not hide a newer one, by which a
        # sign-in that began between the two is refused.
        "revoked_at": max(at, identity.revoked_at or at),
        "revoked_by": by,
    }
    identity.change(**ended)


def take_claims_away(identity: LinkedIdentity) -> None:
    """Delete the values of all claims: the person's newest consent does not cover them."""
    if _empty_claims(identity):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def _empty_claims(identity: LinkedIdentity) -> int:
    # Not ``value=None``: that would mean JSON's null.
    is_empty = Q(value__isnull=True, proof_hash="", expires_at=None, valid_until=None)
    return identity.claims.exclude(is_empty).update(**NO_VALUE)


def delete(identity: LinkedIdentity) -> None:
    """Delete the link with all that it holds. ``forget`` receives the signal and does the rest."""
    # By a query: the instance keeps its key, which receivers of signals need.
    LinkedIdentity.objects.filter(pk=identity.pk).delete()


def delete_unserved(user_id: Any) -> None:
    """Delete the user's identity if it does not count here, so that another one can be linked.

    Such an identity came with a copy of another site's database.
    """
    identity = LinkedIdentity.objects.locked_of_user(user_id)
    if identity is not None and not identity.is_served:
        delete(identity)


def forget(*, instance: LinkedIdentity, using: str, **_signal: object) -> None:
    """Receive ``pre_delete``: what goes with an identity, whoever deletes it.

    The site's own deletion of a user comes here too. The events of the subject lose their content,
    because the next person to link the subject would see it. The user's sessions end. Receivers are
    told after the commit. Before the deletion the row can still be locked, and deferred columns can
    still be read.
    """
    if using != database.alias():
        # A copy, such as an archive of the site.
        return
    identity = LinkedIdentity.objects.locked_row(instance)
    if identity is None:
        # Another request has deleted it. Its subject may be linked anew, and that link stays.
        return

    retention.empty_events(retention.with_content(identity.subject_digest))
    if not identity.is_served:
        # Nobody was told of it here, and no session rests on it.
        return
    Changes.note()
    # Else the end of the consent has said so.
    if identity.consent == Consent.GRANTED:
        sessions.announce_end(identity)
    signals.announce_end(
        signals.identity_unlinked,
        LinkedIdentity,
        user_id=identity.user_id,
    )


def user_of(identity: LinkedIdentity) -> AbstractBaseUser:
    """The user of ``identity``, as an instance that keeps its key if the user is deleted.

    If the row is gone, it is an instance with the key alone: SQL beside Django has deleted it while
    the database checked no foreign keys, as SQLite's own shell does.
    """
    # Not ``identity.user``: a router may read it from a replica.
    return database.account(identity.user_id)


def erase_unlinked(subject_digest: str, *, requested_at: datetime) -> ErasureReceipt:
    """Empty the events of a subject who is not linked. Returns the receipt, which is not saved yet.

    An identity takes the content of its events with it, so what has content was left by SQL beside
    Django.
    """
    count = retention.empty_events(retention.others_with_content(subject_digest))
    return ErasureReceipt(
        requested_at=requested_at,
        erased_at=timezone.now(),
        counts={WebhookEvent._meta.model_name: count},
    )


def announce_erased(receipt: ErasureReceipt, *, user_id: Any = None) -> None:
    """Tell receivers, after the commit, of an erased person, and whose account it was."""
    signals.announce_end(
        signals.data_erased,
        ErasureReceipt,
        user_id=user_id,
        receipt=receipt,
    )


def waits_for_erasure(user_id: Any, *, subject_digest: str = "") -> bool:
    """Whether the account waits for its erasure, or a row of the site holds the subject.

    Meanwhile nobody links to it: the erasure would take what they have just agreed to. Ask with the
    account's row locked.
    """
    waits = Q(account=database.key_text(user_id))
    if subject_digest:
        waits |= Q(subject_digest=subject_digest)
    return ErasureReceipt.objects.filter(waits, erased_at=None).exists()
