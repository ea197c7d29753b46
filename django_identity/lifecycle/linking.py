"""Linking: who a subject belongs to, or why it is refused, and what a sign-in or a code brings.

A new identity is written in two steps. The first transaction writes it empty and revoked, and
commits. The second one locks it, applies the events that came since the sign-in or code began, and
grants. A known identity needs only the second. If the second step is refused, what the first one
made is deleted; if the process dies in between, the next full sign-in fills it.
"""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, OperationalError

from django_identity import database, exceptions, policy, signals
from django_identity.conf import Application
from django_identity.lifecycle import accounts, events, notices, service_data, withdrawal
from django_identity.lifecycle.service_data import ServiceData
from django_identity.logs import LogEvent, log_trouble
from django_identity.models import Consent, LinkedIdentity, LinkedVia, Purpose, WebhookEvent, digest

TRIES = 5
#: Another request linked the same subject, account or address meanwhile, or there was a deadlock.
OVERTAKEN = (
    IntegrityError, OperationalError, exceptions.EmailTaken, exceptions.StorageUnavailable,
)  # fmt: skip


class Arrival(StrEnum):
    """How the person came: by a full sign-in, with its purpose, or with a Connect code."""

    SIGN_IN = "sign-in"
    LINK = "link"
    RENEW = "renewal"
    CODE = "code"


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


class Question(StrEnum):
    """Which of the policy's questions is asked."""

    NONE = ""
    MAY_SIGN_UP = "may_sign_up"
    MAY_SIGN_IN = "may_sign_in"
    MAY_LINK = "may_link"


#: How the identity is linked then, and the question; or why the person is refused.
Decision = tuple[LinkedVia, Question] | str

#: The one place where linking is decided. ``docs/security.md`` has the same table.
DECISIONS: Mapping[tuple[Arrival, Subject], Decision] = {
    (Arrival.SIGN_IN, Subject.NONE): (LinkedVia.OAUTH, Question.MAY_SIGN_UP),
    (Arrival.SIGN_IN, Subject.CONNECT): "linked_by_code",
    (Arrival.SIGN_IN, Subject.OAUTH): (LinkedVia.OAUTH, Question.MAY_SIGN_IN),
    (Arrival.SIGN_IN, Subject.REVOKED): (LinkedVia.OAUTH, Question.MAY_SIGN_IN),
    (Arrival.LINK, Subject.NONE): (LinkedVia.OAUTH, Question.MAY_LINK),
    (Arrival.LINK, Subject.HOLDS_ANOTHER): "user_holds_another",
    (Arrival.LINK, Subject.CONNECT): (LinkedVia.OAUTH, Question.MAY_LINK),
    (Arrival.LINK, Subject.OAUTH): (LinkedVia.OAUTH, Question.NONE),
    (Arrival.LINK, Subject.REVOKED): (LinkedVia.OAUTH, Question.NONE),
    (Arrival.LINK, Subject.CONNECT_ELSEWHERE): "linked_by_code",
    (Arrival.LINK, Subject.OAUTH_ELSEWHERE): "subject_taken",
    (Arrival.RENEW, Subject.NONE): "subject_changed",
    (Arrival.RENEW, Subject.HOLDS_ANOTHER): "subject_changed",
    (Arrival.RENEW, Subject.CONNECT): (LinkedVia.OAUTH, Question.MAY_LINK),
    (Arrival.RENEW, Subject.OAUTH): (LinkedVia.OAUTH, Question.NONE),
    (Arrival.RENEW, Subject.REVOKED): (LinkedVia.OAUTH, Question.NONE),
    (Arrival.RENEW, Subject.CONNECT_ELSEWHERE): "subject_changed",
    (Arrival.RENEW, Subject.OAUTH_ELSEWHERE): "subject_changed",
    (Arrival.CODE, Subject.NONE): (LinkedVia.CONNECT, Question.MAY_LINK),
    (Arrival.CODE, Subject.HOLDS_ANOTHER): "user_holds_another",
    (Arrival.CODE, Subject.CONNECT): (LinkedVia.CONNECT, Question.NONE),
    (Arrival.CODE, Subject.OAUTH): (LinkedVia.OAUTH, Question.NONE),
    # A code restores no power to sign in.
    (Arrival.CODE, Subject.REVOKED): (LinkedVia.CONNECT, Question.NONE),
    (Arrival.CODE, Subject.CONNECT_ELSEWHERE): "subject_taken",
    (Arrival.CODE, Subject.OAUTH_ELSEWHERE): "subject_taken",
}
ARRIVALS = dict(zip(Purpose, (Arrival.SIGN_IN, Arrival.LINK, Arrival.RENEW), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A request to link: how the person came, the user whose account it is about, and when.

    ``user_id``: the user who started it, or None for a sign-in. ``user``: the user who is signed in
    in the person's browser now, or None.
    """

    application: Application
    arrival: Arrival
    user_id: Any
    user: AbstractBaseUser | None
    began_at: datetime


@dataclass(frozen=True, slots=True)
class Linked:
    """The result. ``session``: the identity on which a new session rests, as this link read it."""

    identity: LinkedIdentity
    user: AbstractBaseUser
    session: LinkedIdentity | None


def link(request: LinkRequest, data: ServiceData) -> Linked:
    """Link the subject to its user and store what the service said. Raises a ``LinkingRefused``.

    Must run outside any transaction. It is tried again after ``OVERTAKEN``, and raises
    ``StorageUnavailable`` in the end.
    """
    for _ in range(TRIES - 1):
        with suppress(*OVERTAKEN):
            return _link(request, data)
    try:
        return _link(request, data)
    except (IntegrityError, OperationalError) as error:
        raise exceptions.StorageUnavailable(type(error).__name__) from error


def _link(request: LinkRequest, data: ServiceData) -> Linked:
    application = request.application
    subject_digest = digest(application.alias, application.environment, data.subject)
    with database.atomic():
        known = LinkedIdentity.objects.locked(subject_digest)
        via, question = _decided(request, known)
        if known is not None:
            return _grant(request, data, known, via=via, question=question)
    empty = _write_empty(request, data, via=via)
    try:
        with database.atomic():
            identity = LinkedIdentity.objects.locked(subject_digest)
            if identity is None or (identity.pk, identity.version) != (empty.pk, empty.version):
                raise exceptions.StorageUnavailable("another request has changed the identity")
            may = Question.MAY_SIGN_IN if empty.account_made else Question.NONE
            return _grant(request, data, identity, via=via, question=may, is_new=True)
    except Exception:
        _take_back(empty)
        raise


def _decided(request: LinkRequest, known: LinkedIdentity | None) -> tuple[LinkedVia, Question]:
    """Look the case up in ``DECISIONS``. Raises the refusal."""
    signed_in = request.user if request.arrival is Arrival.SIGN_IN else None
    if signed_in is not None and (known is None or known.user_id != signed_in.pk):
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


def _write_empty(request: LinkRequest, data: ServiceData, *, via: LinkedVia) -> LinkedIdentity:
    """The first step: the identity without data and without consent, and the user of a sign-up."""
    application, is_sign_up = request.application, request.arrival is Arrival.SIGN_IN
    with database.atomic():
        if is_sign_up:
            user = accounts.sign_up(application, profile=data.profile, kyc=data.kyc)
        else:
            user = _active(request.user_id)
            # Before the row is written: if the process dies then, the row is a way in.
            _ask(request, data, Question.MAY_LINK, user)
        return LinkedIdentity.objects.create(
            user_id=user.pk,
            application=application.alias,
            environment=application.environment,
            subject=data.subject,
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
        for _ in range(TRIES - 1):
            with suppress(OperationalError):
                return _delete_empty(empty)
        _delete_empty(empty)
    except Exception as error:  # noqa: BLE001  the refusal is raised; an emptied link opens nothing
        log_trouble(LogEvent.SIGN_IN_FAILED, error, application=empty.application)


def _delete_empty(empty: LinkedIdentity) -> None:
    with database.atomic():
        held = LinkedIdentity.objects.locked(empty.subject_digest)
        if held is None or held.pk != empty.pk or not held.was_never_granted:
            return
        theirs = WebhookEvent.objects.filter(subject_digest=empty.subject_digest)
        withdrawal.empty_events(theirs)
        held.delete()
        if empty.account_made:
            database.all_users().get(pk=empty.user_id).delete()


def _grant(
    request: LinkRequest,
    data: ServiceData,
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
    _ask(request, data, question, user)
    if not is_new and not (is_code and via == LinkedVia.CONNECT):
        # A code may be another person's, so its data is not written to the account.
        accounts.overwrite_fields(application, user, profile=data.profile, kyc=data.kyc)
    service_data.store(application, identity, data, via=via, began_at=request.began_at)
    events.apply_since(identity, request.began_at, is_new=is_new)
    identity.save()
    session = None
    if request.arrival is Arrival.SIGN_IN:
        session = LinkedIdentity.objects.signing_in().filter(user_id=user.pk).first()
    linked = Linked(identity, user, session)
    _announce(request, data, linked, before, is_new=is_new)
    return linked


def _ask(
    request: LinkRequest, data: ServiceData, question: Question, user: AbstractBaseUser
) -> None:
    """Ask the site's policy. Raises ``LinkingRefused``."""
    site = policy.load(request.application.policy)
    if question is Question.MAY_LINK:
        profile = replace(data.profile, by_code=request.arrival is Arrival.CODE)
        if not site.may_link(user, profile):
            raise exceptions.LinkingRefused(code="link_not_allowed")
    elif question and not site.may_sign_in(user):
        raise exceptions.LinkingRefused(code="sign_in_not_allowed")


def _announce(
    request: LinkRequest, data: ServiceData, linked: Linked, before: LinkedIdentity, *, is_new: bool
) -> None:
    """The signals and the notices of a link, after the commit."""
    identity, user = linked.identity, linked.user
    if is_new:
        made = {"user": user, "created": identity.account_made}
        signals.announce(signals.identity_linked, LinkedIdentity, identity=identity, **made)
    if before.consent != Consent.GRANTED:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    if (identity.kyc_level, identity.kyc_status) != (before.kyc_level, before.kyc_status):
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)
    if is_new or identity.linked_via != before.linked_via:
        facts = {"identity": identity, "person": notices.masked(data.profile)}
        notices.send_on_commit(request.application, [user], change="linked", **facts)
    elif request.arrival is Arrival.RENEW:
        notices.send_on_commit(request.application, [user], change="renewed")
