"""Linking: what a sign-in or a code brings is stored for its user, or refused.

``decisions`` says who a subject may belong to. A new identity is written in two steps. The first
transaction writes it empty and revoked, and commits. The second one locks it, stores what came,
applies the events that came since the sign-in or code began, and grants. A known identity needs
only the second.

The race is the reason. A revocation may arrive at the moment in which its subject is linked. Either
it finds the row of the first step and waits for its lock, or the second step finds the event, which
was stored and committed before anything else. In one transaction the two could miss each other.

The site's policy is asked in each step. In the first it sees what the credential proves, in the
second what is stored after the events. If the second step is refused, ``unfinished`` takes back
what the first one made. If the process dies in between, the next full sign-in fills the empty row,
or upkeep takes it back.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError

from django_identity import conf, database, exceptions, signals
from django_identity.lifecycle import (
    accounts,
    arrivals,
    events,
    kyc,
    notices,
    questions,
    unfinished,
    withdrawal,
)
from django_identity.lifecycle.arrivals import Arrival, LinkRequest
from django_identity.lifecycle.decisions import Allow, Question, decide, first_question
from django_identity.lifecycle.questions import Proven
from django_identity.models import Consent, LinkedIdentity, LinkedVia, digest

TRIES = 5


class _Overtaken(Exception):
    """Another request has changed the new row between the two steps. All is decided again."""


#: After these all is decided again: another request has changed the row, there was a deadlock, or
#: the connection has broken since the service was called.
OVERTAKEN = (*database.BROKEN, _Overtaken)
#: The first of these may mean that another request has just written the row, or an account with the
#: address. A second one in a row is a refusal by the database or the site.
REFUSED = (IntegrityError, DataError, ValidationError, exceptions.EmailTaken)


@dataclass(frozen=True, slots=True)
class Linked:
    """The result. ``session_identity``: the identity on which the new session rests, or None.

    ``refusal``: why somebody who returned, or whose account waits for approval, gets no session,
    though what they brought is stored.
    """

    identity: LinkedIdentity
    user: AbstractBaseUser
    session_identity: LinkedIdentity | None
    refusal: exceptions.LinkingRefused | None = None


def link(request: LinkRequest) -> Linked:
    """Link the subject to its user and store what the service said. Raises a ``LinkingRefused``.

    Must run outside any transaction. It is tried again after ``OVERTAKEN``, and raises
    ``StorageUnavailable`` in the end. After ``REFUSED`` it is tried once more.
    """
    linked = _link_with_retries(request)
    if linked.refusal is not None:
        raise linked.refusal
    return linked


def _link_with_retries(request: LinkRequest) -> Linked:
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
        except OVERTAKEN as error:
            if not tries_left:
                raise exceptions.StorageUnavailable(database.name_of(error)) from error
            was_refused = False
        database.reconnect()


def _raise_refusal(error: Exception) -> NoReturn:
    """Raise what a ``REFUSED`` means if it lasts."""
    if isinstance(error, exceptions.EmailTaken):
        raise error
    name = type(error).__name__
    raise exceptions.LinkingRefused(name, code="user_fields_refused") from error


def _link(request: LinkRequest) -> Linked:
    subject_digest = digest(conf.application().environment, request.subject)
    with database.atomic():
        known = LinkedIdentity.objects.locked_with_user(subject_digest)
        allowed = decide(request, known)
        if known is not None:
            return _grant(request, known, allowed)

    empty = _write_empty(request, via=allowed.via)
    try:
        with database.atomic():
            identity = LinkedIdentity.objects.locked_with_user(subject_digest)
            # Between the two steps the row is not locked. Another sign-in may have filled it, or
            # an event changed it.
            if identity is None or identity.pk != empty.pk:
                raise _Overtaken
            if identity.version != empty.version:
                raise _Overtaken
            return _grant(request, identity, allowed, is_new=True)
    except Exception:
        unfinished.take_back(empty)
        raise


# The first step


def _write_empty(request: LinkRequest, *, via: LinkedVia) -> LinkedIdentity:
    """The identity without data and without consent, and the user of a sign-up.

    The policy is asked first: nothing is written of somebody whom it refuses.
    """
    is_sign_up = request.arrival is Arrival.SIGN_IN
    proven = questions.proven_by_credential(request)
    with database.atomic():
        if is_sign_up:
            accounts.require_free_address(request.profile)
            questions.require_yes(request, Question.MAY_SIGN_UP, None, proven)
            user = accounts.sign_up(request.profile, request.kyc)
        else:
            withdrawal.delete_unserved(request.user_id)
            user = _locked_active_user(request.user_id)
            questions.require_yes(request, Question.MAY_LINK, user, proven)
        made_account = ""
        if is_sign_up:
            made_account = database.key_text(user.pk)
        return LinkedIdentity.objects.create(
            user_id=user.pk,
            environment=conf.application().environment,
            subject=request.subject,
            consent=Consent.REVOKED,
            linked_via=via,
            made_account=made_account,
        )


def _locked_active_user(user_id: Any) -> AbstractBaseUser:
    """The user who adds a link. Raises ``LinkingRefused`` if the account is disabled or gone."""
    locked = database.all_users().select_for_update().filter(pk=user_id)
    user: AbstractBaseUser | None = locked.first()
    if user is None or not user.is_active:
        raise exceptions.LinkingRefused(code="user_inactive")
    return user


# The second step


def _grant(
    request: LinkRequest,
    identity: LinkedIdentity,
    allowed: Allow,
    *,
    is_new: bool = False,
) -> Linked:
    """Store what came, apply the events since, ask the policy, and grant.

    The rows of the identity and of its user are locked.
    """
    if not identity.is_served:
        detail = "its row has another environment or subject"
        raise exceptions.LinkingRefused(detail, code="user_inactive")
    before = copy(identity)
    user = identity.user
    waits = _waits_for_approval(user, identity)
    if not (user.is_active or waits):
        raise exceptions.LinkingRefused(code="user_inactive")
    _require_not_withdrawn(request, identity, is_new=is_new)

    proven = _store(request, identity, before, via=allowed.via, is_new=is_new)
    session = None
    if not waits:
        session = _session_identity(request, identity)
    refusal = _ask_policy(request, allowed, user, before, proven)
    if waits and refusal is None:
        refusal = exceptions.LinkingRefused(code="approval_pending")
    former_address = ""
    is_return = refusal is None and not before.was_never_granted
    # A code may be another person's, so its data is not the account's.
    if is_return and request.arrival is not Arrival.CODE:
        former_address = accounts.update(
            user,
            profile=request.profile,
            kyc=proven.kyc,
            claims=proven.claims,
        )

    linked = Linked(identity, user, session, refusal)
    _announce(request, linked, before, former_address=former_address)
    return linked


def _require_not_withdrawn(
    request: LinkRequest, identity: LinkedIdentity, *, is_new: bool
) -> None:
    """Raises ``LinkingRefused`` if the consent or the account has been ended since they began."""
    # ``decide`` has asked this of a row that was known. A new one was not locked until now.
    if is_new and withdrawal.is_being_erased(identity):
        raise exceptions.LinkingRefused(code="erasure_pending")
    # The consent ended after the press of the button. Withdrawing must be as easy as giving (GDPR
    # art. 7 (3)), so the older yes counts no more.
    if identity.revoked_at is not None and identity.revoked_at > request.began_at:
        raise exceptions.LinkingRefused(code="consent_withdrawn")


def _waits_for_approval(user: AbstractBaseUser, identity: LinkedIdentity) -> bool:
    """Whether the sign-up made an inactive account, which nobody has approved yet.

    Some sites make every account so, and staff activate it. So the link and what came are kept, and
    the person gets no session.
    """
    if user.is_active or not identity.made_its_account:
        return False
    # With a last login the account was in use, so it was disabled and does not wait.
    return getattr(user, "last_login", None) is None


def _store(
    request: LinkRequest,
    identity: LinkedIdentity,
    before: LinkedIdentity,
    *,
    via: LinkedVia,
    is_new: bool,
) -> Proven:
    """Store what came, and apply the events since. Returns what opens gates then."""
    stored = arrivals.store(request, identity, via=via)
    rows = stored.rows
    version = identity.version
    events.apply_since(identity, request.began_at, is_new=is_new)
    if identity.version != version:
        # An event has changed the identity since, and perhaps its claims.
        rows = None
    identity.save_changes(before)
    return questions.proven_by(identity, rows, unread=stored.unread)


def _session_identity(
    request: LinkRequest, granted: LinkedIdentity
) -> LinkedIdentity | None:
    """The identity on which the session of a sign-in rests. Raises ``LinkingRefused``.

    There is none for a user whom the site's default manager hides: no request would find them.
    """
    if request.arrival is not Arrival.SIGN_IN:
        return None
    if not granted.is_shown:
        raise exceptions.LinkingRefused(
            "the site's manager hides the user", code="user_inactive"
        )
    return granted


# The questions to the policy


def _ask_policy(
    request: LinkRequest,
    allowed: Allow,
    user: AbstractBaseUser,
    before: LinkedIdentity,
    proven: Proven,
) -> exceptions.LinkingRefused | None:
    """Ask all questions. Raises a refusal, but returns that of ``may_sign_in`` for who returns.

    They have been in this account before, and this consent is their newest. So what it brought is
    kept, and what it did not bring is emptied: a claim that is gone must not open a gate because
    the policy wanted it. Only session and fields are refused. Of a new link nothing is kept.
    """
    for asked in allowed.asks:
        question = asked
        if asked is Question.FIRST_AGAIN:
            question = first_question(before)
        if question is Question.MAY_SIGN_IN and not user.is_active:
            # An account that waits gets no session. Its first sign-in after the approval asks.
            continue
        refusal = questions.refusal_of(request, question, user, proven)
        if refusal is None:
            continue
        if question is Question.MAY_SIGN_IN and not before.was_never_granted:
            return refusal
        raise refusal
    return None


# Signals and notices


def _announce(
    request: LinkRequest, linked: Linked, before: LinkedIdentity, *, former_address: str
) -> None:
    """The signals and the notices of a link, after the commit."""
    identity = linked.identity
    user = linked.user
    if before.was_never_granted:
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
    if before.was_never_granted or identity.linked_via != before.linked_via:
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
