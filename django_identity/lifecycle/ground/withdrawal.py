"""The end of a consent or of a link: the site forgets what it held, and the sessions end.

Every function works on an identity whose row the caller has locked, and runs in the caller's
transaction. ``is_being_erased`` says who may not sign in or link because an erasure is pending.
"""

from collections.abc import Iterable
from copy import copy
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.utils import timezone

from django_identity import database, signals
from django_identity.lifecycle.ground import kyc, retention, sessions
from django_identity.logs import LogEvent, log, log_trouble, models_in_the_way
from django_identity.models import (
    AccountKept,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    RevokedBy,
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
    identity stays, without data: with it the owner can sign in again. While an erasure is pending
    any row stays, because the erasure finds by it what it has to erase.
    """
    is_deleted = False
    if identity.connect_only and not is_being_erased(identity):
        is_deleted = _delete_unless_protected(identity)
    if not is_deleted:
        empty(identity, at=at, by=by)
    signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return is_deleted


def _delete_unless_protected(identity: LinkedIdentity) -> bool:
    """Delete the link. Returns False if the site's own rows or receivers do not let it go."""
    try:
        with database.atomic(), database.checked_references():
            delete(identity)
    except Exception as error:  # the site's own rules may raise anything
        if database.is_broken(error):
            raise
        log_trouble(
            LogEvent.DISCONNECT_FAILED,
            error,
            row=identity.pk,
            models=models_in_the_way(error),
        )
        return False
    return True


def empty(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> None:
    """Revoke the consent, delete tokens, claims' values and level, and end the sessions."""
    before = copy(identity)
    TokenGrant.objects.filter(identity_id=identity.pk).delete()
    _empty_claims(identity)
    identity.set_columns(NOTHING_BROUGHT)
    identity.consent = Consent.REVOKED
    # Revocations arrive in any order. A late older one must not hide a newer one, by which a
    # sign-in that began between the two is refused.
    identity.revoked_at = max(at, identity.revoked_at or at)
    identity.revoked_by = by
    identity.save_changes(before)
    sessions.end_all(identity)


def request_erasure(
    identity: LinkedIdentity, *, at: datetime, by: RevokedBy
) -> ErasureReceipt:
    """End the consent at once, and note that the subject is to be erased. Returns the receipt.

    The receipt remembers what decides about the account, because the site may delete the identity
    before the erasure. A code may be another person's: asked by it alone, the account stays. Of the
    end of the consent the signal tells only if an event asked; else ``data_erased`` tells of all.
    """
    empty(identity, at=at, by=by)
    receipt = ErasureReceipt(
        identity=identity,
        account_made=identity.made_its_account,
        requested_at=at,
        next_attempt_at=timezone.now(),
    )
    if identity.connect_only:
        receipt.account_kept = AccountKept.OLDER
    else:
        receipt.user_id = identity.user_id
    receipt.save(force_insert=True)
    return receipt


def take_claims_back(identity: LinkedIdentity) -> None:
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
    """Delete the identity of the user that does not count here, so that another one can be linked.

    It came with a copy of another site's database.
    """
    identity = LinkedIdentity.objects.locked_of_user(user_id)
    if identity is not None and not identity.is_served:
        delete(identity)


def forget(*, instance: LinkedIdentity, using: str, **_signal: object) -> None:
    """Receive ``pre_delete``: what goes with an identity, whoever deletes it.

    The site's own deletion of a user comes here too. The events of the subject lose their content,
    because whoever links the subject next would see it; the user's sessions end; receivers are told
    after the commit. Before the deletion the row can still be locked, and a column that the caller
    deferred can still be read.
    """
    if using != database.alias():
        # A copy, such as an archive of the site.
        return
    identity = LinkedIdentity.objects.locked_row(instance)
    if identity is None:
        # Another request has deleted it. Its subject may be linked anew, and that link stays.
        return

    events = WebhookEvent.objects.filter(subject_digest=identity.subject_digest)
    retention.empty(events)
    if not identity.is_served:
        # Nobody was told of it here, and no session rests on it.
        return
    Changes.note()
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
    events = WebhookEvent.objects.filter(subject_digest=subject_digest)
    with_content = events.exclude(subject="", event_id="", payload__isnull=True)
    # What is not applied yet, as the request itself, is emptied when it is.
    count = retention.empty(with_content.exclude(outcome=""))
    return ErasureReceipt(
        requested_at=requested_at,
        erased_at=timezone.now(),
        counts={WebhookEvent._meta.model_name: count},
    )


def announce_erased(receipt: ErasureReceipt) -> None:
    """Tell receivers, after the commit, that a person is erased."""
    signals.announce(
        signals.data_erased,
        ErasureReceipt,
        receipt=receipt,
    )


def note_erased(receipt: ErasureReceipt, erased: Iterable[LinkedIdentity]) -> None:
    """Log which rows went. A restored backup brings them back, and this record with nothing."""
    rows = list(erased)
    keys = ",".join(str(row.pk) for row in rows) or None
    linked = ",".join(row.created_at.isoformat() for row in rows) or None
    log(LogEvent.ERASED, row=receipt.pk, identity=keys, linked=linked)


def is_being_erased(identity: LinkedIdentity) -> bool:
    """Whether an erasure of the identity, or of its account, is requested and not done.

    Meanwhile nobody signs in with it or links it: see ``decisions``. Otherwise a person who asked
    for the erasure would be stored again, and it would take what they have just agreed to.
    """
    # Every request ends the consent in the transaction that writes the receipt, and no consent is
    # granted while it is pending.
    if identity.consent == Consent.GRANTED:
        return False
    is_about_it = asks_to_erase(identity.pk, user_id=identity.user_id)
    return ErasureReceipt.objects.filter(is_about_it, erased_at=None).exists()


def asks_to_erase(identity_id: Any, *, user_id: Any) -> Q:
    """The condition that a pending receipt is about the identity, or about its account alone."""
    return Q(identity_id=identity_id) | Q(user_id=user_id, identity=None)
