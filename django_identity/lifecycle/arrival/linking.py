"""Linking: choose the site's user for a subject, or refuse, and store the service's data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, OperationalError
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from django_identity import background, database, policy, signals
from django_identity.background import TaskName
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
from django_identity.lifecycle import erasure
from django_identity.lifecycle.arrival import accounts, link_notice
from django_identity.lifecycle.events import events_meanwhile, former_links, lock_subject
from django_identity.lifecycle.upkeep import kyc_checks, replacement, tokens
from django_identity.lifecycle.upkeep.claims import CLAIMS_SCOPE
from django_identity.lifecycle.upkeep.kyc_checks import KYC_SCOPE
from django_identity.models import (
    NEVER,
    Consent,
    FormerLink,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    digest,
)
from django_identity.service.connect_answer import KYC_SCOPE as CONNECT_KYC_SCOPE
from django_identity.service.connect_answer import ConnectAnswer
from django_identity.service.messages import ClaimsAnswer, KycStatus, Profile, TokenAnswer


class _Complete(Protocol):
    def __call__(self, *, completed_by: AbstractBaseUser | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A request to link: its application, its purpose, the user who started, and when.

    ``complete`` records the end. It is called in the transaction of the link, and again if a new
    user is created.
    """

    application: Application
    purpose: Purpose
    user_id: Any
    began_at: datetime
    complete: _Complete


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceData:
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

    @property
    def is_incomplete(self) -> bool:
        """Whether a sign-in left a slow answer to upkeep."""
        lacks_claims = CLAIMS_SCOPE in self.scopes and self.claims is None
        lacks_kyc = KYC_SCOPE in self.scopes and self.kyc is None
        return self.tokens is not None and (lacks_claims or lacks_kyc)


@dataclass(frozen=True, slots=True)
class Linked:
    """The result of a link. ``created``: the site's user is new."""

    identity: LinkedIdentity
    user: AbstractBaseUser
    created: bool = False


def link(request: LinkRequest, data: ServiceData, *, user: AbstractBaseUser | None) -> Linked:
    """Link the subject to its user and store the service's data, in one transaction.

    ``user`` is the user who is signed in in the person's browser now, or None. If two requests link
    the same new subject at once, a unique constraint stops one of them; it tries again and finds
    the identity. A deadlock with an event is retried in the same way. Raises a ``LinkingRefused``.
    """
    try:
        return _link_once(request, data, user=user)
    except (IntegrityError, OperationalError, EmailTaken):
        return _link_once(request, data, user=user)


def _link_once(request: LinkRequest, data: ServiceData, *, user: AbstractBaseUser | None) -> Linked:
    subject_digest = digest(
        request.application.alias, request.application.environment, data.subject
    )
    identities = LinkedIdentity.objects.filter(subject_digest=subject_digest)
    identity = identities.select_related("user").first()
    abandoned = identity if _is_abandoned(request, data, identity) else None
    identity = None if abandoned else identity
    former = _former_link(request, subject_digest) if identity is None else None
    held: LinkedIdentity | FormerLink | None = identity or former
    _refuse_wrong_person(request, data, held, user=user)
    owner = held.user if held else _fit_owner(request, user)
    created, via_before = owner is None, held.linked_via if held else None
    with database.atomic():
        # Write first: SQLite then waits for the lock. After a read it would fail at once.
        request.complete(completed_by=owner)
        lock_subject(subject_digest)
        if abandoned is not None:
            by_code = Q(linked_via=LinkedVia.CONNECT, consent=Consent.REVOKED)
            erasure.disconnect(abandoned, only=by_code)
        if owner is None:
            owner = accounts.sign_up(request.application, profile=data.profile, kyc=data.kyc)
            request.complete(completed_by=owner)
        _ask_site(request, data, owner=owner, via=via_before, created=created)
        is_new = identity is None
        if identity is None:
            identity = _create(request, data, owner=owner, created=created)
        elif not (data.is_by_code and via_before == LinkedVia.CONNECT):
            # A code may be another person's, so its data is not written to the account.
            accounts.overwrite_fields(
                request.application, owner, profile=data.profile, kyc=data.kyc
            )
        _store(request, data, identity, is_new=is_new)
        if is_new or identity.linked_via != via_before:
            link_notice.send_on_commit(
                request.application, identity, user=owner, profile=data.profile
            )
        elif request.purpose == Purpose.RENEW:
            link_notice.send_change_on_commit(request.application, [owner], change="renewed")
    return Linked(identity, owner, created=created)


# Whose account it is


def _is_abandoned(request: LinkRequest, data: ServiceData, identity: LinkedIdentity | None) -> bool:
    """Whether a code linked the subject to another account, and the consent was revoked since.

    The full sign-in then removes that link.
    """
    return (
        identity is not None
        and not data.is_by_code
        and identity.linked_via == LinkedVia.CONNECT
        and identity.consent == Consent.REVOKED
        and identity.user_id != request.user_id
    )


def _former_link(request: LinkRequest, subject_digest: str) -> FormerLink | None:
    """The account from which the subject was disconnected, if a sign-in may bring it back there."""
    if request.purpose != Purpose.SIGN_IN:
        return None
    site = policy.load(request.application.policy)
    held = LinkedIdentity.objects.filter(
        user_id=OuterRef("user_id"),
        application=request.application.alias,
        environment=request.application.environment,
    )
    former = former_links.of_subject(subject_digest).filter(~Exists(held)).select_related("user")
    return next((link for link in former if site.may_come_back(link.user)), None)


def _refuse_wrong_person(
    request: LinkRequest,
    data: ServiceData,
    identity: LinkedIdentity | FormerLink | None,
    *,
    user: AbstractBaseUser | None,
) -> None:
    """Check that the subject may belong to this user, depending on the purpose of the sign-in."""
    owner_id = identity.user_id if identity else None
    if request.purpose == Purpose.SIGN_IN and user is not None and owner_id != user.pk:
        raise UserChanged
    if request.purpose == Purpose.RENEW and owner_id != request.user_id:
        raise SubjectChanged
    if identity is None:
        return
    is_by_code_alone = identity.linked_via == LinkedVia.CONNECT
    if request.purpose == Purpose.SIGN_IN and is_by_code_alone:
        raise LinkedByCode
    if request.purpose == Purpose.LINK and owner_id != request.user_id:
        raise LinkedByCode if is_by_code_alone and not data.is_by_code else SubjectTaken
    if not identity.user.is_active:
        raise UserInactive


def _fit_owner(request: LinkRequest, user: AbstractBaseUser | None) -> AbstractBaseUser | None:
    """Re-read ``user``, who must not have an identity under this application yet.

    Since the start of the request the user may have been disabled, deleted or made staff.
    """
    if user is None:
        return None
    held = LinkedIdentity.objects.of_user(
        user.pk,
        application=request.application.alias,
        environment=request.application.environment,
    )
    users = database.users().annotate(holds_identity=Exists(held))
    known: Any = users.filter(pk=user.pk).first()
    if known is None or not known.is_active:
        raise UserInactive
    if known.holds_identity:
        raise UserHoldsAnother
    return known  # type: ignore[no-any-return]  # the site's user model


def _ask_site(
    request: LinkRequest,
    data: ServiceData,
    *,
    owner: AbstractBaseUser,
    via: str | None,
    created: bool,
) -> None:
    """Ask the site's policy whether ``owner`` may sign in, or be linked, in this way.

    ``via``: how the identity was linked before. A full sign-in confirms a link by code, so the
    policy is asked as for a new link. A sign-in to which only a code leads needs both answers.
    """
    site = policy.load(request.application.policy)
    if request.purpose == Purpose.SIGN_IN:
        by_code = data.is_by_code or (not created and via != LinkedVia.OAUTH)
        may_link = not by_code or site.may_link(owner, replace(data.profile, by_code=True))
        if not may_link or not site.may_sign_in(owner):
            raise SignInNotAllowed
        return
    is_new_link = via is None or (via != LinkedVia.OAUTH and not data.is_by_code)
    profile = replace(data.profile, by_code=data.is_by_code)
    if is_new_link and not site.may_link(owner, profile):
        raise LinkNotAllowed


def _create(
    request: LinkRequest, data: ServiceData, *, owner: AbstractBaseUser, created: bool
) -> LinkedIdentity:
    """Create an identity of ``owner``. The lock on the user makes erasures wait.

    A subject that was disconnected from the same account gets its former kind of link back.
    """
    subject = (request.application.alias, request.application.environment, data.subject)
    former_of_subject = former_links.of_subject(digest(*subject))
    was_linked = Exists(former_of_subject.filter(user_id=OuterRef("pk")))
    # A lock, because PostgreSQL checks a deferred foreign key only at the commit.
    users = database.all_users().select_for_update().annotate(was_linked=was_linked)
    known: Any = owner if created else users.filter(pk=owner.pk).first()
    if known is None or not known.is_active:
        raise UserInactive
    former = None
    if not created and known.was_linked:
        former = former_of_subject.filter(user_id=owner.pk).first()
    via_code = LinkedVia.SIGN_UP if created else LinkedVia.CONNECT
    via = via_code if data.is_by_code else LinkedVia.OAUTH
    account_made = created
    if former is not None:
        via, account_made = LinkedVia(former.linked_via), former.account_made
        former.delete()
    identity = LinkedIdentity.objects.create(
        user_id=owner.pk,
        application=request.application.alias,
        environment=request.application.environment,
        subject=data.subject,
        consent=Consent.REVOKED,
        consent_changed_at=NEVER,
        linked_via=via,
        account_made=account_made,
        # KYC events from before the link are ignored: that data may have been erased.
        kyc_changed_at=_consented_at(request, data),
    )
    signals.announce(
        signals.identity_linked, LinkedIdentity, identity=identity, user=owner, created=created
    )
    return identity


# What is stored


def _store(
    request: LinkRequest, data: ServiceData, identity: LinkedIdentity, *, is_new: bool
) -> None:
    """Save the service's data, unless an event since the start of the sign-in revokes it."""
    was_granted = identity.consent == Consent.GRANTED
    kyc_before = (identity.kyc_level, identity.kyc_status)
    claims = None
    if data.claims is not None:
        claims = replacement.prepare(request.application, identity, data.claims, data.proof)
    changes = _changes(request, data, identity, claims=claims)
    _save(request, data, identity, changes, is_new=is_new, claims=claims)
    if data.is_incomplete:
        background.hand_over(TaskName.REFETCH_ONE, identity.pk)
    if not was_granted:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    if (identity.kyc_level, identity.kyc_status) != kyc_before:
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)


def _changes(
    request: LinkRequest,
    data: ServiceData,
    identity: LinkedIdentity,
    *,
    claims: replacement.Replacement | None,
) -> dict[str, Any]:
    """Set the columns that the data changes, and return them. Others may change meanwhile."""
    consented_at = _consented_at(request, data)
    changes = _consent_columns(data, identity, consented_at=consented_at)
    if data.kyc is not None and identity.kyc_changed_at <= consented_at:
        changes |= {"kyc_changed_at": consented_at, "kyc_rank": ""}
        changes |= kyc_checks.columns_of(data.kyc, checked_at=timezone.now())
    if data.connect is not None:
        changes["connect_request_id"] = data.connect.request_id
        # The service's clock may be ahead. A time from the future would outlast a revocation.
        changes["connect_issued_at"] = min(data.connect.issued_at, timezone.now())
        changes["connect_person"] = data.profile.masked()
    if claims is not None:
        changes |= claims.columns
    if data.tokens is not None:
        changes |= _taken_back(data, identity, consented_at=consented_at)
        changes |= _sign_in_columns(request, identity, consented_at=consented_at)
    for name, value in changes.items():
        setattr(identity, name, value)
    if data.tokens is not None:
        due_at = kyc_checks.next_refetch(
            request.application, identity, claims_due_at=changes.get("refetch_due_at")
        )
        due_at = timezone.now() if data.is_incomplete else due_at
        identity.refetch_due_at = changes["refetch_due_at"] = due_at
    return changes


def _consent_columns(
    data: ServiceData, identity: LinkedIdentity, *, consented_at: datetime
) -> dict[str, Any]:
    """The columns of the consent. A sign-in replaces its scopes; a Connect code adds scopes."""
    is_granted = identity.consent == Consent.GRANTED
    kept = identity.scopes if is_granted and data.is_by_code else []
    if is_granted and not data.is_by_code and KYC_SCOPE not in (*identity.scopes, *data.scopes):
        # The level that a code brought stays, so the events about it still count.
        kept = [scope for scope in identity.scopes if scope == CONNECT_KYC_SCOPE]
    return {
        "consent": Consent.GRANTED,
        "consent_changed_at": max(
            identity.consent_changed_at if is_granted else NEVER, consented_at
        ),
        "scopes": list(dict.fromkeys([*kept, *data.scopes])),
    }


def _taken_back(
    data: ServiceData, identity: LinkedIdentity, *, consented_at: datetime
) -> dict[str, Any]:
    """What scopes had brought that this sign-in does not have. A Connect code's level stays."""
    columns: dict[str, Any] = {}
    is_by_code = identity.consent == Consent.GRANTED and KYC_SCOPE not in identity.scopes
    if KYC_SCOPE not in data.scopes and not is_by_code:
        columns |= {**kyc_checks.NO_LEVEL, "kyc_rank": ""}
        columns["kyc_changed_at"] = max(identity.kyc_changed_at, consented_at)
    if CLAIMS_SCOPE not in data.scopes:
        columns |= replacement.NO_CREDENTIAL
    return columns


def _sign_in_columns(
    request: LinkRequest, identity: LinkedIdentity, *, consented_at: datetime
) -> dict[str, Any]:
    """The columns that a full sign-in changes: the kind of link, sessions, re-fetches."""
    columns: dict[str, Any] = {
        "connect_person": "",
        "signed_in_at": max(identity.signed_in_at, consented_at),
        "refetch_taken_until": None,
        "refetch_started": False,
        "refetch_failures": 0,
        "last_error": "",
    }
    if request.purpose != Purpose.SIGN_IN:
        # The sign-in came from the account's own session, so the identity now signs in.
        columns["linked_via"] = LinkedVia.OAUTH
    if identity.revoked_at is not None and identity.revoked_at >= consented_at:
        # An earlier revocation in the same second. Each sign-in writes a different time, so that
        # a session that the revocation has ended does not become valid again.
        columns["revoked_at"] = request.began_at - timedelta(seconds=1)
    return columns


def _save(
    request: LinkRequest,
    data: ServiceData,
    identity: LinkedIdentity,
    changes: dict[str, Any],
    *,
    is_new: bool,
    claims: replacement.Replacement | None,
) -> None:
    """Write row, claims and tokens, then apply the events that arrived during the sign-in."""
    answered_at = _consented_at(request, data) if data.is_by_code else None
    since = events_meanwhile.Since(request.began_at, answered_at)
    is_done = not is_new and events_meanwhile.save_if_no_event_came(identity, since, changes)
    if not is_done:
        events_meanwhile.save_unless_revoked(identity, since, changes)
    if claims is not None:
        replacement.write(identity, claims)
    elif data.tokens is not None and CLAIMS_SCOPE not in data.scopes:
        replacement.take_back(identity)
    if data.tokens is not None:
        tokens.store(request.application, identity, data.tokens)
    if not is_done:
        events_meanwhile.apply_events_since(identity, since)


def _consented_at(request: LinkRequest, data: ServiceData) -> datetime:
    """The time from which the consent counts. A later revocation is never older than this time.

    It is the start of the flow, or ``issued_at`` of a Connect answer if that is earlier. It is in
    whole seconds, because the service's time-stamps may have no fractions; at equal times the
    revocation wins.
    """
    began_at = request.began_at
    moment = min(began_at, data.connect.issued_at) if data.connect else began_at
    return moment.replace(microsecond=0)
