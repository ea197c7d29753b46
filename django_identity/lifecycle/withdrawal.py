"""The end of a consent or of a link: the site forgets what it held, and the sessions end.

Every function works on an identity whose row the caller has locked, and runs in the caller's
transaction.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from django_identity import conf, database, exceptions, policy, signals
from django_identity.conf import Application
from django_identity.event_types import ERASING
from django_identity.lifecycle import notices, sessions
from django_identity.models import (
    AccountKept,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    RevokedBy,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)

#: Nothing is known of the person's KYC.
NO_LEVEL: Mapping[str, Any] = {
    "kyc_level": "",
    "kyc_status": "",
    "kyc_provider": "",
    "kyc_verified_at": None,
    "kyc_said_at": None,
}
#: The columns of an identity without consent.
NOTHING_HELD: Mapping[str, Any] = {
    **NO_LEVEL,
    "credential_issued_at": None,
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
NO_VALUE: Mapping[str, Any] = {
    "value": None,
    "proof_hash": "",
    "issued_at": None,
    "expires_at": None,
    "valid_until": None,
}
#: What an event keeps when its subject is forgotten: application, type, times and digests.
EMPTIED: Mapping[str, Any] = {"payload": None, "subject": "", "event_id": "", "error": ""}


def revoke(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> bool:
    """End the consent at once. Returns whether the link is deleted.

    A link by code is, because it may be another person's. The row of an ``oauth`` identity stays,
    without data: by it the owner comes back. While an erasure is pending any row stays: by it the
    erasure finds what it has to erase.
    """
    is_deleted = identity.connect_only and not is_being_erased(identity)
    if is_deleted:
        delete(identity)
    else:
        empty(identity, at=at, by=by)
    signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return is_deleted


def empty(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> None:
    """Revoke the consent, delete tokens, claims' values and level, and end the sessions."""
    TokenGrant.objects.filter(identity_id=identity.pk).delete()
    _empty_claims(identity)
    sessions.end_all(user_of(identity), application=identity.application)
    identity.session_epoch += 1
    identity.set_columns(NOTHING_HELD)
    identity.consent = Consent.REVOKED
    # Revocations arrive in any order. A late older one must not hide a newer one, by which a
    # sign-in that began between the two is refused.
    identity.revoked_at = max(at, identity.revoked_at or at)
    identity.revoked_by = by
    identity.save()


def request_erasure(identity: LinkedIdentity, *, at: datetime, by: RevokedBy) -> ErasureReceipt:
    """End the consent at once, and note that the subject is to be erased. Returns the receipt.

    The receipt remembers what decides about the account, because the site may delete the identity
    before the erasure. A code may be another person's: asked by it alone, the account stays.
    """
    empty(identity, at=at, by=by)
    return ErasureReceipt.objects.create(
        application=identity.application,
        identity=identity,
        user_id=None if identity.connect_only else identity.user_id,
        account_made=identity.account_made,
        account_kept=AccountKept.OLDER if identity.connect_only else "",
        requested_at=at,
        next_attempt_at=timezone.now(),
    )


def take_claims_back(identity: LinkedIdentity) -> None:
    """Delete the values of all claims: the person's newest consent does not cover them."""
    if _empty_claims(identity):
        signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)


def _empty_claims(identity: LinkedIdentity) -> int:
    claims = StoredClaim.objects.filter(identity_id=identity.pk)
    # Not ``value=None``: that would mean JSON's null.
    is_empty = Q(value__isnull=True, proof_hash="", expires_at=None, valid_until=None)
    return claims.exclude(is_empty).update(**NO_VALUE)


def delete(identity: LinkedIdentity) -> None:
    """Delete the link with all that it holds. ``forget`` does the rest."""
    # By a query: the instance keeps its key, which receivers of signals need.
    LinkedIdentity.objects.filter(pk=identity.pk).delete()


def forget(*, instance: LinkedIdentity, using: str, **_signal: object) -> None:
    """Receive ``pre_delete``: what goes with an identity, whoever deletes it.

    The site's own deletion of a user comes here too. The events of the subject lose their content,
    because whoever links the subject next would see it; the user's sessions end; receivers are told
    after the commit. Before the deletion the row can still be locked, in the order of
    ``locked_beside``, and a column that the caller deferred can still be read.
    """
    if using != database.alias():
        # A copy, such as an archive of the site.
        return
    identity = LinkedIdentity.objects.locked_beside(instance)
    if identity is None:
        # Another request has deleted it. Its subject may be linked anew, and that link stays.
        return

    empty_events(WebhookEvent.objects.filter(subject_digest=identity.subject_digest))
    if identity.was_never_granted:
        # Nobody was told of it, and no session rests on it.
        return
    user = user_of(identity)
    application = identity.application
    sessions.end_all(user, application=application)
    signals.announce(signals.identity_unlinked, LinkedIdentity, user=user, application=application)


def user_of(identity: LinkedIdentity) -> AbstractBaseUser:
    """The user of ``identity``, as an instance that keeps its key if the user is deleted."""
    # Not ``identity.user``: a router may read it from a replica.
    user: AbstractBaseUser = database.all_users().get(pk=identity.user_id)
    return user


def empty_events(events: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from ``events``. Type, times and digests stay until the purge.

    Their handlers do not run, except those of the request to delete. An event that was not applied
    yet stays due, because nobody else would apply it. One statement for any number.
    """
    stays_due = Q(event_type__in=ERASING) | Q(outcome="")
    when_due = Case(When(stays_due, then=F("next_attempt_at")))
    return events.update(**EMPTIED, next_attempt_at=when_due)


def erase_unlinked(
    application: str, subject_digest: str, *, requested_at: datetime
) -> ErasureReceipt:
    """Empty the events of a subject who is not linked. Returns the receipt, which is not saved yet.

    An identity takes the content of its events with it, so what has content was left by SQL beside
    Django.
    """
    events = WebhookEvent.objects.filter(subject_digest=subject_digest)
    count = empty_events(events.exclude(subject="", event_id="", payload__isnull=True))
    return ErasureReceipt(
        application=application,
        requested_at=requested_at,
        erased_at=timezone.now(),
        counts={WebhookEvent._meta.model_name: count},
    )


def parting(user: AbstractBaseUser, *, alias: str) -> dict[str, bool] | None:
    """What follows if ``user`` leaves the application ``alias`` now. None if nothing is linked.

    ``is_only_way_in``: the account has no other way in, so it waits. ``signs_in``: the identity
    signs in now, and afterwards does not. ``has_both``: one identity is of test and one is live.
    """
    identities = list(LinkedIdentity.objects.filter(user_id=user.pk, application=alias))
    if not identities:
        return None
    return {
        "is_only_way_in": not all(map(may_disconnect, identities)),
        "signs_in": not all(each.connect_only for each in identities),
        "has_both": len(identities) > 1,
    }


def leave(user: AbstractBaseUser, *, application: Application) -> bool:
    """Disconnect what is stored under the application, in any environment. False if nothing was.

    Raises like ``disconnect``.
    """
    identities = LinkedIdentity.objects.filter(user_id=user.pk, application=application.alias)
    with database.atomic():
        return sum(disconnect(each) for each in identities) > 0


def application_of(alias: str) -> Application:
    """The application, or the default one's settings for an alias that is not set up any more."""
    if alias in conf.aliases():
        return conf.application(alias)
    return replace(conf.application(), alias=alias)


def disconnect(identity: LinkedIdentity) -> bool:
    """Disconnect at the person's or an operator's wish. Returns False if the link is gone.

    Raises ``NoOtherWayIn`` or another ``IdentityError``. Then nothing has changed.
    """
    with database.atomic():
        locked = LinkedIdentity.objects.locked_beside(identity)
        if locked is None:
            return False
        if is_being_erased(locked):
            raise exceptions.LinkingRefused(code="erasure_pending")
        if not may_disconnect(locked):
            raise exceptions.NoOtherWayIn
        application = application_of(locked.application)
        notices.send_on_commit(application, user_of(locked), change="disconnected")
        delete(locked)
    return True


def may_disconnect(identity: LinkedIdentity) -> bool:
    """Whether the account's owner gets in without the link: the link that made the account asks."""
    if not identity.account_made:
        return True
    site = policy.load(application_of(identity.application).policy)
    return site.has_other_way_in(user_of(identity))


def is_being_erased(identity: LinkedIdentity) -> bool:
    """Whether an erasure of the identity, or of its account, is requested and not done.

    Every request ends the consent in the transaction that writes the receipt, and no consent is
    granted while it is pending. Only an identity under another application may be linked to the
    account in the same moment.
    """
    if identity.consent == Consent.GRANTED and len(conf.aliases()) == 1:
        return False
    is_about_it = asks_to_erase(identity.pk, user_id=identity.user_id)
    return ErasureReceipt.objects.filter(is_about_it, erased_at=None).exists()


def asks_to_erase(identity_id: Any, *, user_id: Any) -> Q:
    """The condition that a pending receipt is about the identity, or about its account alone."""
    return Q(identity_id=identity_id) | Q(user_id=user_id, identity=None)
