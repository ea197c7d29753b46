"""Linking: who a subject belongs to, or why it is refused, and what a sign-in or a code brings.

A new identity is written in two steps. The first transaction writes it empty and revoked, and
commits. The second one locks it, applies the events that came since the sign-in or code began, and
grants. A known identity needs only the second. If the second step is refused, what the first one
made is deleted; if the process dies in between, the next full sign-in fills it.
"""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError

from django_identity import database, exceptions, policy, signals
from django_identity.lifecycle import accounts, arrivals, events, notices, sessions, withdrawal
from django_identity.lifecycle.arrivals import Arrival, LinkRequest
from django_identity.logs import LogEvent, log_trouble
from django_identity.models import Consent, LinkedIdentity, LinkedVia, WebhookEvent, digest

TRIES = 5
#: Another request linked the same subject, account or address meanwhile, there was a deadlock, or
#: the connection has broken since the service was called.
OF_DATABASE = (IntegrityError, *database.BROKEN)
OVERTAKEN = (*OF_DATABASE, exceptions.EmailTaken, exceptions.StorageUnavailable)


class Subject(StrEnum):
    """How the subject is linked, and whether it is to the account that the person is in.

    A sign-in is in no account yet: the subject's row decides which.
    """

    NONE = "not linked"
    HOLDS_ANOTHER = "not linked, but the account has another subject"
    CONNECT = "by code"
    OAUTH = "by sign-in"
    REVOKED = "by sign-in, revoked"
    CONNECT_ELSEWHERE = "by code, to another account"
    OAUTH_ELSEWHERE = "by sign-in, to another account"


#: The method of the policy that is asked, if any.
Question = Literal["", "may_sign_up", "may_sign_in", "may_link"]
#: How the identity is linked then, and the question; or why the person is refused.
Decision = tuple[LinkedVia, Question] | str

#: The one place where linking is decided. ``docs/security.md`` has the same table.
DECISIONS: Mapping[tuple[Arrival, Subject], Decision] = {
    (Arrival.SIGN_IN, Subject.NONE): (LinkedVia.OAUTH, "may_sign_up"),
    (Arrival.SIGN_IN, Subject.CONNECT): "linked_by_code",
    (Arrival.SIGN_IN, Subject.OAUTH): (LinkedVia.OAUTH, "may_sign_in"),
    (Arrival.SIGN_IN, Subject.REVOKED): (LinkedVia.OAUTH, "may_sign_in"),
    (Arrival.LINK, Subject.NONE): (LinkedVia.OAUTH, "may_link"),
    (Arrival.LINK, Subject.HOLDS_ANOTHER): "user_holds_another",
    (Arrival.LINK, Subject.CONNECT): (LinkedVia.OAUTH, "may_link"),
    (Arrival.LINK, Subject.OAUTH): (LinkedVia.OAUTH, ""),
    (Arrival.LINK, Subject.REVOKED): (LinkedVia.OAUTH, ""),
    (Arrival.LINK, Subject.CONNECT_ELSEWHERE): "linked_by_code",
    (Arrival.LINK, Subject.OAUTH_ELSEWHERE): "subject_taken",
    (Arrival.RENEW, Subject.NONE): "subject_changed",
    (Arrival.RENEW, Subject.HOLDS_ANOTHER): "subject_changed",
    (Arrival.RENEW, Subject.CONNECT): (LinkedVia.OAUTH, "may_link"),
    (Arrival.RENEW, Subject.OAUTH): (LinkedVia.OAUTH, ""),
    (Arrival.RENEW, Subject.REVOKED): (LinkedVia.OAUTH, ""),
    (Arrival.RENEW, Subject.CONNECT_ELSEWHERE): "subject_changed",
    (Arrival.RENEW, Subject.OAUTH_ELSEWHERE): "subject_changed",
    (Arrival.CODE, Subject.NONE): (LinkedVia.CONNECT, "may_link"),
    (Arrival.CODE, Subject.HOLDS_ANOTHER): "user_holds_another",
    (Arrival.CODE, Subject.CONNECT): (LinkedVia.CONNECT, ""),
    (Arrival.CODE, Subject.OAUTH): (LinkedVia.OAUTH, ""),
    # A code restores no power to sign in.
    (Arrival.CODE, Subject.REVOKED): (LinkedVia.CONNECT, ""),
    (Arrival.CODE, Subject.CONNECT_ELSEWHERE): "subject_taken",
    (Arrival.CODE, Subject.OAUTH_ELSEWHERE): "subject_taken",
}


@dataclass(frozen=True, slots=True)
class Linked:
    """The result. ``session``: the identity on which a new session rests, as this link read it."""

    identity: LinkedIdentity
    user: AbstractBaseUser
    session: LinkedIdentity | None


def link(request: LinkRequest) -> Linked:
    """Link the subject to its user and store what the service said. Raises a ``LinkingRefused``.

    Must run outside any transaction. It is tried again after ``OVERTAKEN``, and raises
    ``StorageUnavailable`` in the end.
    """
    for _ in range(TRIES - 1):
        with suppress(*OVERTAKEN):
            return _link(request)
        database.reconnect()
    try:
        return _link(request)
    except OF_DATABASE as error:
        raise exceptions.StorageUnavailable(type(error).__name__) from error


def _link(request: LinkRequest) -> Linked:
    application = request.application
    subject_digest = digest(application.alias, application.environment, request.subject)
    with database.atomic():
        known = LinkedIdentity.objects.locked(subject_digest)
        via, question = _decided(request, known)
        if known is not None:
            return _grant(request, known, via=via, question=question)
    empty = _write_empty(request, via=via)
    try:
        with database.atomic():
            identity = LinkedIdentity.objects.locked(subject_digest)
            if identity is None or (identity.pk, identity.version) != (empty.pk, empty.version):
                raise exceptions.StorageUnavailable("another request has changed the identity")
            question = "may_sign_in" if empty.account_made else ""
            return _grant(request, identity, via=via, question=question, is_new=True)
    except Exception:
        _take_back(empty)
        raise


def _decided(request: LinkRequest, known: LinkedIdentity | None) -> tuple[LinkedVia, Question]:
    """Look the case up in ``DECISIONS``. Raises the refusal."""
    is_in_account = request.arrival is Arrival.SIGN_IN and request.user_id is not None
    if is_in_account and (known is None or known.user_id != request.user_id):
        # Somebody else signed in here meanwhile, or the person in another tab.
        raise exceptions.FlowError(code="user_changed")
    decision = DECISIONS[request.arrival, _subject_state(request, known)]
    if isinstance(decision, str):
        raise exceptions.LinkingRefused(code=decision)
    return decision


def _subject_state(request: LinkRequest, known: LinkedIdentity | None) -> Subject:
    is_sign_in = request.arrival is Arrival.SIGN_IN
    if known is None:
        held = LinkedIdentity.objects.under(request.application).filter(user_id=request.user_id)
        return Subject.NONE if is_sign_in or not held.exists() else Subject.HOLDS_ANOTHER
    is_here = is_sign_in or known.user_id == request.user_id
    if known.linked_via == LinkedVia.CONNECT:
        return Subject.CONNECT if is_here else Subject.CONNECT_ELSEWHERE
    if not is_here:
        return Subject.OAUTH_ELSEWHERE
    return Subject.OAUTH if known.consent == Consent.GRANTED else Subject.REVOKED


def _write_empty(request: LinkRequest, *, via: LinkedVia) -> LinkedIdentity:
    """The first step: the identity without data and without consent, and the user of a sign-up."""
    application, is_sign_up = request.application, request.arrival is Arrival.SIGN_IN
    with database.atomic():
        if is_sign_up:
            user = accounts.sign_up(application, request.profile, request.kyc)
        else:
            user = _active(request.user_id)
            # Before the row is written: if the process dies then, the row is a way in.
            _ask(request, "may_link", user)
        return LinkedIdentity.objects.create(
            user_id=user.pk,
            application=application.alias,
            environment=application.environment,
            subject=request.subject,
            consent=Consent.REVOKED,
            linked_via=via,
            account_made=is_sign_up,
        )


def _active(user_id: Any) -> AbstractBaseUser:
    """The user, locked. Raises ``LinkingRefused``."""
    locked = database.all_users().select_for_update().filter(pk=user_id)
    user: AbstractBaseUser | None = locked.first()
    if user is None or not user.is_active:
        raise exceptions.LinkingRefused(code="user_inactive")
    return user


def _take_back(empty: LinkedIdentity) -> None:
    """Delete what the first step made, unless a sign-in has filled it or an erasure will do it."""
    try:
        with database.atomic():
            held = LinkedIdentity.objects.locked(empty.subject_digest)
            if held is None or held.pk != empty.pk or not held.was_never_granted:
                return
            withdrawal.empty_events(WebhookEvent.objects.filter(subject_digest=held.subject_digest))
            held.delete()
            if empty.account_made:
                database.all_users().get(pk=empty.user_id).delete()
    except Exception as error:  # noqa: BLE001  the refusal is raised; an emptied link opens nothing
        log_trouble(LogEvent.SIGN_IN_FAILED, error, application=empty.application)


def _grant(
    request: LinkRequest,
    identity: LinkedIdentity,
    *,
    via: LinkedVia,
    question: Question,
    is_new: bool = False,
) -> Linked:
    """The second step: store what came, apply the events since, and grant. The row is locked."""
    application, is_code = request.application, request.arrival is Arrival.CODE
    before, user = copy(identity), _active(identity.user_id)
    if withdrawal.is_being_erased(identity):
        raise exceptions.LinkingRefused(code="erasure_pending")
    if identity.revoked_at is not None and identity.revoked_at > request.began_at:
        raise exceptions.LinkingRefused(code="consent_withdrawn")
    _ask(request, question, user)
    if not is_new and not (is_code and via == LinkedVia.CONNECT):
        # A code may be another person's, so its data is not written to the account.
        accounts.overwrite_fields(application, user, profile=request.profile, kyc=request.kyc)
    arrivals.store(request, identity, via=via)
    events.apply_since(identity, request.began_at, is_new=is_new)
    identity.save()
    session = None
    if request.arrival is Arrival.SIGN_IN:
        session = sessions.signing_in(sessions.identities_of(user.pk))
    linked = Linked(identity, user, session)
    _announce(request, linked, before)
    return linked


def _ask(request: LinkRequest, question: Question, user: AbstractBaseUser) -> None:
    """Ask the site's policy. Raises ``LinkingRefused``."""
    site = policy.load(request.application.policy)
    if question == "may_link" and not site.may_link(user, request.profile):
        raise exceptions.LinkingRefused(code="link_not_allowed")
    if question == "may_sign_in" and not site.may_sign_in(user):
        raise exceptions.LinkingRefused(code="sign_in_not_allowed")


def _announce(request: LinkRequest, linked: Linked, was: LinkedIdentity) -> None:
    """The signals and the notices of a link, after the commit."""
    identity, user = linked.identity, linked.user
    if was.was_never_granted:
        made = {"user": user, "created": identity.account_made}
        signals.announce(signals.identity_linked, LinkedIdentity, identity=identity, **made)
    if was.consent != Consent.GRANTED:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    if (identity.kyc_level, identity.kyc_status) != (was.kyc_level, was.kyc_status):
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    if was.was_never_granted or identity.linked_via != was.linked_via:
        facts = {"identity": identity, "person": notices.masked(request.profile)}
        notices.send_on_commit(request.application, user, change="linked", **facts)
    elif request.arrival is Arrival.RENEW:
        notices.send_on_commit(request.application, user, change="renewed")
