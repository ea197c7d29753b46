"""Linking: what a sign-in or a code brings is stored for its user, or refused, in one transaction.

``decisions`` says to whom a subject may belong. The transaction locks the identity of the subject,
or without one its ``SubjectLock``. An event does the same, so the second of the two sees the first
(``events``). A refusal or an error rolls all of it back, the account of a sign-up included. Two
kinds of refusal keep the new data: ``may_sign_in`` refuses a returning person, or the account waits
for approval.

The site's policy is asked anew at each try. ``may_sign_up`` and ``may_link`` are asked before
anything is written, with the data that came, less what events took away since. ``may_sign_in`` is
asked at the end, with the stored data.
"""

from copy import copy
from typing import Any, NoReturn

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError

from django_identity import conf, database, exceptions, signals
from django_identity.lifecycle.arriving import accounts, arrivals, questions
from django_identity.lifecycle.arriving.decisions import Allow, Question, decide
from django_identity.lifecycle.arriving.questions import Proven
from django_identity.lifecycle.arriving.request import Arrival, LinkRequest
from django_identity.lifecycle.ground import kyc, notices, withdrawal
from django_identity.lifecycle.said import events
from django_identity.models import (
    Consent,
    LinkedIdentity,
    LinkedVia,
    WebhookEvent,
    digest,
)
from django_identity.service.answers import KycStatus

TRIES = 5
#: The first of these may mean that another request has just written the row, or an account with the
#: address. A second one in a row is a refusal by the database or the site.
REFUSED = (IntegrityError, DataError, ValidationError, exceptions.EmailTaken)


def link(request: LinkRequest) -> LinkedIdentity:
    """Link the subject to its user and store what the service said. Raises a ``LinkingRefused``.

    Must run outside any transaction. After a deadlock, or if the connection has broken since the
    service was called, it is tried again, and raises ``StorageUnavailable`` in the end. After
    ``REFUSED`` it is tried once more.
    """
    was_refused = False
    tries_left = TRIES
    while True:
        tries_left -= 1
        try:
            return _link(request)
        except REFUSED as error:
            if was_refused or not tries_left:
                _raise_refusal(error)
            was_refused = True
        except database.BROKEN as error:
            if not database.is_broken(error):
                raise
            if not tries_left:
                raise exceptions.StorageUnavailable(database.name_of(error)) from error
            was_refused = False
        database.reconnect()


def _raise_refusal(error: Exception) -> NoReturn:
    """Raise the refusal that a second ``error`` of ``REFUSED`` means."""
    if isinstance(error, exceptions.EmailTaken):
        raise error
    name = type(error).__name__
    raise exceptions.LinkingRefused(name, code="user_fields_refused") from error


def _link(request: LinkRequest) -> LinkedIdentity:
    subject_digest = digest(conf.application().environment, request.subject)
    with database.atomic():
        rows = LinkedIdentity.objects.with_user()
        known = rows.locked_or_held(subject_digest)
        allowed = decide(request, known)
        user = _user_of(request, known)
        heard = events.heard_since(subject_digest, request.began_at)
        level = _ask_first(request, allowed, user, heard).kyc
        identity = known or _written(request, user, level, via=allowed.via)
        refusal = _grant(request, identity, allowed, heard)
    if refusal is not None:
        raise refusal
    return identity


# Before anything is written


def _user_of(
    request: LinkRequest,
    known: LinkedIdentity | None,
) -> AbstractBaseUser | None:
    """The user, locked, or None: a sign-up makes one. Raises ``LinkingRefused``."""
    if known is not None:
        _require_open(request, known)
        return known.user
    if request.arrival is Arrival.SIGN_IN:
        return None
    withdrawal.delete_unserved(request.user_id)
    user = database.locked_account(request.user_id)
    if user is None or not user.is_active:
        raise exceptions.LinkingRefused(code="user_inactive")
    require_no_erasure(user.pk)
    return user


def _require_open(request: LinkRequest, identity: LinkedIdentity) -> None:
    """Raises ``LinkingRefused``: a disabled account, a consent that ended since, an erasure."""
    if not (identity.user.is_active or _waits_for_approval(identity)):
        raise exceptions.LinkingRefused(code="user_inactive")
    # The consent ended after the press of the button. Withdrawing must be as easy as giving (GDPR
    # art. 7 (3)), so the older yes counts no more.
    if identity.revoked_at is not None and identity.revoked_at > request.began_at:
        raise exceptions.LinkingRefused(code="consent_withdrawn")
    # With a granted consent the person may come until the account goes.
    if identity.consent != Consent.GRANTED and not identity.is_new:
        require_no_erasure(identity.user_id, identity.subject_digest)


def require_no_erasure(user_id: Any, subject_digest: str = "") -> None:
    """Raises ``LinkingRefused`` while the account, or a row of the subject, is to be erased."""
    if withdrawal.waits_for_erasure(user_id, subject_digest=subject_digest):
        raise exceptions.LinkingRefused(code="erasure_pending")


def _waits_for_approval(identity: LinkedIdentity) -> bool:
    """Whether the sign-up made an inactive account, which nobody has approved yet.

    Some sites make every account so, and staff activate it. So the link and what came are kept, and
    the person gets no session.
    """
    if identity.user.is_active or not identity.made_its_account:
        return False
    # With a last login the account was in use, so it was disabled and does not wait.
    return getattr(identity.user, "last_login", None) is None


def _ask_first(
    request: LinkRequest,
    allowed: Allow,
    user: AbstractBaseUser | None,
    heard: list[WebhookEvent],
) -> Proven:
    """Ask ``may_sign_up`` or ``may_link``. Returns what was shown. Raises the refusal."""
    if user is None:
        accounts.require_free_address(request.profile)
    proven = questions.proven_by_arrival(request, heard)
    for question in allowed.asks:
        if question is not Question.MAY_SIGN_IN:
            refusal = questions.refusal_of(request, question, user, proven)
            if refusal is not None:
                raise refusal
    return proven


# Then


def _written(
    request: LinkRequest,
    user: AbstractBaseUser | None,
    level: KycStatus | None,
    *,
    via: LinkedVia,
) -> LinkedIdentity:
    """A new identity without data and without consent, and the account of a sign-up."""
    made_account = ""
    if user is None:
        user = accounts.sign_up(request.profile, level)
        made_account = database.key_text(user.pk)
    written = LinkedIdentity.objects.create(
        user_id=user.pk,
        environment=conf.application().environment,
        subject=request.subject,
        consent=Consent.REVOKED,
        linked_via=via,
        made_account=made_account,
    )
    # A receiver of the site may have changed it, or the account.
    identity = LinkedIdentity.objects.with_user().locked(written.subject_digest)
    if identity is None:
        raise exceptions.LinkingRefused("a receiver deleted it", code="user_inactive")
    identity.is_new = True
    _require_open(request, identity)
    return identity


def _grant(
    request: LinkRequest,
    identity: LinkedIdentity,
    allowed: Allow,
    heard: list[WebhookEvent],
) -> exceptions.LinkingRefused | None:
    """Store what came, apply the events since, ask ``may_sign_in``, and grant.

    Returns the refusal of a session, if any. The data stays stored then: the person has returned,
    or their account waits for approval.
    """
    if not identity.is_served:
        detail = "its row has another environment or subject"
        raise exceptions.LinkingRefused(detail, code="user_inactive")
    before = copy(identity)
    user = identity.user
    proven = _store(request, identity, before, heard, via=allowed.via)
    refusal = None
    if not user.is_active:
        refusal = exceptions.LinkingRefused(code="approval_pending")
    elif Question.MAY_SIGN_IN in allowed.asks:
        if not identity.is_shown:
            # No request would find the user of the session.
            detail = "the site's manager hides the user"
            raise exceptions.LinkingRefused(detail, code="user_inactive")
        refusal = questions.refusal_of(request, Question.MAY_SIGN_IN, user, proven)
        if refusal is not None and identity.is_new:
            raise refusal
    former_address = ""
    is_return = refusal is None and not identity.is_new
    # A code may be another person's, so its data is not the account's.
    if is_return and request.arrival is not Arrival.CODE:
        former_address = accounts.update(
            user,
            profile=request.profile,
            kyc=proven.kyc,
            claims=proven.claims,
        )

    _announce(request, identity, before, former_address=former_address)
    return refusal


def _store(
    request: LinkRequest,
    identity: LinkedIdentity,
    before: LinkedIdentity,
    heard: list[WebhookEvent],
    *,
    via: LinkedVia,
) -> Proven:
    """Store what came, and apply the events since. Returns what opens gates then."""
    stored = arrivals.store(request, identity, heard, via=via)
    rows = stored.rows
    if events.apply_again(identity, events.overtaking(heard, request.began_at)):
        # An event has changed the identity since, and perhaps its claims.
        rows = None
    identity.save_changes(before)
    return questions.proven_by(identity, rows, unread=stored.unread)


# Signals and notices


def _announce(
    request: LinkRequest,
    identity: LinkedIdentity,
    before: LinkedIdentity,
    *,
    former_address: str,
) -> None:
    """The signals and the notices of a link, after the commit."""
    user = identity.user
    if identity.is_new:
        signals.announce(
            signals.identity_linked,
            LinkedIdentity,
            identity=identity,
            user=user,
            created=identity.made_its_account,
        )
    if before.consent != Consent.GRANTED:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    kyc.announce_change(identity, before=before.kyc_state)

    facts: dict[str, Any] = {"address_changed": bool(former_address)}
    if identity.is_new or identity.linked_via != before.linked_via:
        change = "linked"
        facts |= {"identity": identity, "person": notices.masked(request.profile)}
    elif request.arrival is Arrival.RENEW:
        change = "renewed"
    elif former_address:
        change = "address"
    else:
        return
    notices.send_on_commit(user, change=change, **facts)
    if former_address:
        # Whoever has taken over an account must not be the only one to hear of it.
        former = accounts.with_address(user, former_address)
        notices.send_on_commit(former, change=change, **facts)
