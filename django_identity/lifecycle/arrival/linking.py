"""Linking: choose the site's user for a subject, or refuse, and store the service's data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Exists
from django.utils import timezone

from django_identity import policy, signals
from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.exceptions import (
    EmailTaken,
    LinkedByCode,
    LinkNotAllowed,
    SignInNotAllowed,
    SubjectChanged,
    SubjectTaken,
    UserChanged,
    UserHoldsAnother,
    UserInactive,
)
from django_identity.lifecycle.arrival import accounts, link_notice
from django_identity.lifecycle.events import events_meanwhile, lock_subject
from django_identity.lifecycle.upkeep import kyc_checks, replacement, tokens
from django_identity.models import NEVER, Consent, LinkedIdentity, LinkedVia, Purpose, digest
from django_identity.service.connect_answer import ConnectAnswer
from django_identity.service.messages import ClaimsAnswer, KycStatus, Profile, TokenAnswer


class _Complete(Protocol):
    def __call__(self, *, completed_by: AbstractBaseUser | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """The reason for a link: its purpose, the user who started, when, and how to record the end.

    ``complete`` is called in the transaction of the link, and again if a new user is created.
    """

    purpose: Purpose
    user_id: Any
    began_at: datetime
    complete: _Complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The service's data about the person, checked to be about one subject.

    A sign-in has ``tokens`` and verified ``claims``; a Connect code has ``connect``.
    """

    subject: str
    scopes: tuple[str, ...]
    profile: Profile
    kyc: KycStatus | None
    tokens: TokenAnswer | None = None
    claims: ClaimsAnswer | None = None
    proof: VerifiedCredential | None = None
    connect: ConnectAnswer | None = None

    @property
    def is_by_code(self) -> bool:
        """Whether the data comes from a Connect code, which may be another person's code."""
        return self.connect is not None


@dataclass(frozen=True, slots=True)
class Linked:
    """The result of a link. ``created``: the site's user is new."""

    identity: LinkedIdentity
    user: AbstractBaseUser
    created: bool = False


def link(
    application: Application,
    errand: Errand,
    arrival: Arrival,
    *,
    user: AbstractBaseUser | None,
) -> Linked:
    """Link the subject to its user and store the service's data, in one transaction.

    ``user`` is the user who is signed in in the person's browser now, or None. If two requests link
    the same new subject at once, a unique constraint stops one of them; it tries again and finds
    the identity. A deadlock with an event is retried in the same way. Raises a ``LinkingRefused``.
    """
    try:
        return _link_once(application, errand, arrival, user=user)
    except (IntegrityError, OperationalError, EmailTaken):
        return _link_once(application, errand, arrival, user=user)


def unlink(
    user: AbstractBaseUser, *, application: Application, only_via: LinkedVia | None = None
) -> bool:
    """Disconnect the identity with grant, claims and credential. False if there was none.

    ``only_via``: leave an identity that was linked in another way.
    """
    identities = LinkedIdentity.objects.of_user(
        user.pk, application=application.alias, environment=application.environment
    )
    if only_via is not None:
        identities = identities.filter(linked_via=only_via)
    with transaction.atomic():
        deleted, _ = identities.delete()
        if deleted:
            signals.announce(
                signals.identity_unlinked,
                LinkedIdentity,
                user=user,
                application=application.alias,
            )
    return bool(deleted)


def _link_once(
    application: Application,
    errand: Errand,
    arrival: Arrival,
    *,
    user: AbstractBaseUser | None,
) -> Linked:
    identity = (
        LinkedIdentity.objects.of_subject(
            application=application.alias,
            environment=application.environment,
            subject=arrival.subject,
        )
        .select_related("user")
        .first()
    )
    abandoned = identity if _is_abandoned(errand, arrival, identity) else None
    identity = None if abandoned else identity
    _refuse_wrong_person(errand, arrival, identity, user=user)
    owner = identity.user if identity else user
    if identity is None and owner is not None:
        owner = _fit_owner(application, owner)
    created, is_new = owner is None, identity is None
    with transaction.atomic():
        # Write first: SQLite then waits for the lock. After a read it would fail at once.
        errand.complete(completed_by=owner)
        if identity is None:
            subject = (application.alias, application.environment, arrival.subject)
            lock_subject(digest(*subject))
        if abandoned is not None:
            unlink(abandoned.user, application=application, only_via=LinkedVia.CONNECT)
        if owner is None:
            owner = accounts.sign_up(application, profile=arrival.profile, kyc=arrival.kyc)
            errand.complete(completed_by=owner)
        via_before = identity.linked_via if identity else None
        _ask_site(application, errand, arrival, owner=owner, via=via_before, created=created)
        if identity is None:
            identity = _bound(application, errand, arrival, owner=owner, created=created)
        elif not (arrival.is_by_code and via_before == LinkedVia.CONNECT):
            # A code may be another person's, so its data is not written to the account.
            accounts.overwrite_fields(application, owner, profile=arrival.profile, kyc=arrival.kyc)
        _store(application, errand, arrival, identity, is_new=is_new)
        if identity.linked_via != via_before:
            link_notice.send_on_commit(application, identity, user=owner, profile=arrival.profile)
    return Linked(identity, owner, created=created)


def _is_abandoned(errand: Errand, arrival: Arrival, identity: LinkedIdentity | None) -> bool:
    """Whether a code linked the subject to another account, and the consent was revoked since.

    The full sign-in then removes that link.
    """
    return (
        identity is not None
        and not arrival.is_by_code
        and identity.linked_via == LinkedVia.CONNECT
        and identity.consent == Consent.REVOKED
        and identity.user_id != errand.user_id
    )


def _refuse_wrong_person(
    errand: Errand,
    arrival: Arrival,
    identity: LinkedIdentity | None,
    *,
    user: AbstractBaseUser | None,
) -> None:
    """Check that the subject may belong to this user, depending on the purpose of the sign-in."""
    owner_id = identity.user_id if identity else None
    if errand.purpose == Purpose.SIGN_IN and user is not None and owner_id != user.pk:
        raise UserChanged
    if errand.purpose == Purpose.RENEW and owner_id != errand.user_id:
        raise SubjectChanged
    if identity is None:
        return
    is_by_code_alone = identity.linked_via == LinkedVia.CONNECT
    if errand.purpose == Purpose.SIGN_IN and is_by_code_alone:
        raise LinkedByCode
    if errand.purpose == Purpose.LINK and owner_id != errand.user_id:
        raise LinkedByCode if is_by_code_alone and not arrival.is_by_code else SubjectTaken
    if not identity.user.is_active:
        raise UserInactive


def _ask_site(
    application: Application,
    errand: Errand,
    arrival: Arrival,
    *,
    owner: AbstractBaseUser,
    via: str | None,
    created: bool,
) -> None:
    """Ask the site's policy whether ``owner`` may sign in, or be linked, in this way.

    ``via``: how the identity was linked before. A full sign-in confirms a link by code, so the
    policy is asked as for a new link.
    """
    site = policy.load(application.policy)
    if errand.purpose == Purpose.SIGN_IN:
        by_code = arrival.is_by_code or (not created and via != LinkedVia.OAUTH)
        if not site.may_sign_in(owner, by_code=by_code):
            raise SignInNotAllowed
        return
    is_new_link = via is None or (via != LinkedVia.OAUTH and not arrival.is_by_code)
    if is_new_link and not site.may_link(owner, arrival.profile, by_code=arrival.is_by_code):
        raise LinkNotAllowed


def _fit_owner(application: Application, owner: AbstractBaseUser) -> AbstractBaseUser:
    """Re-read ``owner``, who must not have an identity under this application.

    Since the start of the request the user may have been disabled, deleted or made staff.
    """
    held = LinkedIdentity.objects.of_user(
        owner.pk, application=application.alias, environment=application.environment
    )
    users = get_user_model()._default_manager.annotate(holds_identity=Exists(held))
    known: Any = users.filter(pk=owner.pk).first()
    if known is None or not known.is_active:
        raise UserInactive
    if known.holds_identity:
        raise UserHoldsAnother
    return known  # type: ignore[no-any-return]  # the site's user model


def _bound(
    application: Application,
    errand: Errand,
    arrival: Arrival,
    *,
    owner: AbstractBaseUser,
    created: bool,
) -> LinkedIdentity:
    """Create an identity of ``owner``. The lock on the user makes erasures wait."""
    # A lock, because PostgreSQL checks a deferred foreign key only at the commit.
    users = get_user_model()._base_manager.select_for_update()
    known: Any = owner if created else users.filter(pk=owner.pk).first()
    if known is None or not known.is_active:
        raise UserInactive
    identity = LinkedIdentity.objects.create(
        user_id=owner.pk,
        application=application.alias,
        environment=application.environment,
        subject=arrival.subject,
        consent=Consent.REVOKED,
        consent_changed_at=NEVER,
        linked_via=_linked_via(arrival, created=created),
        # What was said of the subject before is nothing of this consent; it may have been erased.
        kyc_changed_at=_consented_at(errand, arrival),
    )
    signals.announce(
        signals.identity_linked, LinkedIdentity, identity=identity, user=owner, created=created
    )
    return identity


def _linked_via(arrival: Arrival, *, created: bool) -> LinkedVia:
    if not arrival.is_by_code:
        return LinkedVia.OAUTH
    return LinkedVia.SIGN_UP if created else LinkedVia.CONNECT


def _store(
    application: Application,
    errand: Errand,
    arrival: Arrival,
    identity: LinkedIdentity,
    *,
    is_new: bool,
) -> None:
    was_granted = identity.consent == Consent.GRANTED
    kyc_before = (identity.kyc_level, identity.kyc_status)
    consented_at = _consented_at(errand, arrival)
    columns = _columns(identity, errand, arrival, consented_at=consented_at)
    new = None
    if arrival.claims is not None:
        new = replacement.prepare(application, identity, arrival.claims, arrival.proof)
        columns |= new.columns
    for name, value in columns.items():
        setattr(identity, name, value)
    if arrival.tokens is not None:
        identity.refetch_due_at = columns["refetch_due_at"] = kyc_checks.next_refetch(
            application, identity, claims_due_at=columns.get("refetch_due_at")
        )
    is_sign_in = arrival.connect is None
    since = events_meanwhile.Since(errand.began_at, errand.began_at if is_sign_in else consented_at)
    undisturbed = not is_new and events_meanwhile.save_if_no_event_came(identity, since, columns)
    if not undisturbed:
        events_meanwhile.save_unless_revoked(identity, since, columns)
    if new is not None:
        replacement.write(identity, new)
    if arrival.tokens is not None:
        tokens.store(application, identity, arrival.tokens)
    if not undisturbed:
        events_meanwhile.apply_events_since(identity, since)
    if not was_granted:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    if (identity.kyc_level, identity.kyc_status) != kyc_before:
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)


def _consented_at(errand: Errand, arrival: Arrival) -> datetime:
    """The time from which the consent counts. A later revocation is never older than this time.

    It is the start of the flow, or ``issued_at`` of a Connect answer if that is earlier. It is in
    whole seconds, because the service's time-stamps may have no fractions; at equal times the
    revocation wins.
    """
    began_at = errand.began_at
    moment = min(began_at, arrival.connect.issued_at) if arrival.connect else began_at
    return moment.replace(microsecond=0)


def _columns(
    identity: LinkedIdentity, errand: Errand, arrival: Arrival, *, consented_at: datetime
) -> dict[str, Any]:
    """The columns that the service's data changes. Other columns may change meanwhile."""
    stands = identity.consent == Consent.GRANTED
    columns: dict[str, Any] = {
        "consent": Consent.GRANTED,
        "consent_changed_at": max(identity.consent_changed_at if stands else NEVER, consented_at),
        "scopes": _scopes(identity, arrival),
    }
    if arrival.kyc is not None and identity.kyc_changed_at <= consented_at:
        columns |= {"kyc_changed_at": consented_at, "kyc_rank": ""}
        columns["kyc_level"] = arrival.kyc.kyc_level
        columns["kyc_status"] = arrival.kyc.status
        columns["kyc_provider"] = arrival.kyc.provider
        columns["kyc_verified_at"] = arrival.kyc.verified_at
        columns["kyc_checked_at"] = timezone.now()
    if arrival.tokens is not None:
        columns["connect_person"] = ""
        if errand.purpose != Purpose.SIGN_IN:
            # The sign-in came from the account's own session, so the identity now signs in.
            columns["linked_via"] = LinkedVia.OAUTH
        columns["signed_in_at"] = max(identity.signed_in_at, consented_at)
        if identity.revoked_at is not None and identity.revoked_at >= consented_at:
            # Of the same second, and over; no two sign-ins may write the same, or a session of the
            # one before, which such a revocation has ended, would last again.
            columns["revoked_at"] = errand.began_at - timedelta(seconds=1)
        columns |= {"refetch_taken_until": None, "refetch_started": False}
        columns |= {"refetch_failures": 0, "last_error": ""}
    if arrival.connect is not None:
        columns["connect_request_id"] = arrival.connect.request_id
        columns["connect_issued_at"] = arrival.connect.issued_at
        columns["connect_person"] = arrival.profile.masked()
    return columns


def _scopes(identity: LinkedIdentity, arrival: Arrival) -> list[str]:
    """The scopes: a sign-in replaces them, a Connect code adds to them."""
    stands = arrival.connect is not None and identity.consent == Consent.GRANTED
    return list(dict.fromkeys([*(identity.scopes if stands else []), *arrival.scopes]))
