"""Linking: which site user a subject belongs to, and what a site may refuse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, Q
from django.utils import timezone

from django_identity import policy, signals
from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.exceptions import (
    ConsentWithdrawn,
    EmailTaken,
    SignUpRefused,
    SubjectChanged,
    SubjectTaken,
    UserChanged,
    UserHoldsAnother,
    UserInactive,
)
from django_identity.lifecycle import authorization_requests, claims, tokens
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    WebhookEvent,
)
from django_identity.service.messages import ClaimsAnswer, KycStatus, Profile, TokenAnswer

WITHDRAWALS = ("consent.revoked", "data.deletion_requested")
CLOCK_SKEW = timedelta(minutes=5)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
TAKEN_OVER = (
    "consent", "consent_changed_at", "scopes",
    "kyc_level", "kyc_status", "kyc_provider", "kyc_verified_at",
    "credential", "credential_issued_at", "credential_expires_at",
    "refetch_due_at", "refetch_failures", "last_error",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """All that the service said about the person who came back, checked to be about one subject."""

    subject: str
    scopes: tuple[str, ...]
    tokens: TokenAnswer
    profile: Profile
    kyc: KycStatus | None
    claims: ClaimsAnswer | None
    proof: VerifiedCredential | None


@dataclass(frozen=True, slots=True)
class Linked:
    """Who was signed in or linked. ``created``: the site's user is new."""

    identity: LinkedIdentity
    user: AbstractBaseUser
    created: bool = False


def link(
    application: Application,
    request: AuthorizationRequest,
    arrival: Arrival,
    *,
    user: AbstractBaseUser | None,
) -> Linked:
    """Bind the subject that arrived to the user it belongs to, and store what came with it.

    ``user`` is who is signed in in the person's browser now, if anybody is.
    Everything happens in one transaction or not at all. Two arrivals of one new subject at the same
    moment: the database lets one in; the other finds the identity at its second look.
    Raises a ``LinkingRefused``.
    """
    try:
        return _link_once(application, request, arrival, user=user)
    except IntegrityError:
        return _link_once(application, request, arrival, user=user)


def unlink(user: AbstractBaseUser, *, application: Application) -> bool:
    """Take the bond away, with grant, claims and credential. False if there was none."""
    with transaction.atomic():
        deleted, _ = LinkedIdentity.objects.of_user(
            user.pk, application=application.alias, environment=application.environment
        ).delete()
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
    request: AuthorizationRequest,
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
    _refuse_wrong_person(request, identity, user=user)
    owner = identity.user if identity else user
    created = owner is None
    with transaction.atomic():
        # A write comes first: SQLite then waits for the lock instead of failing at the upgrade.
        authorization_requests.complete(request, completed_by=owner)
        if owner is None:
            owner = _signed_up(application, request, arrival)
        if identity is None:
            identity = _bound(application, request, arrival, owner=owner, created=created)
        else:
            _overwrite_user_fields(application, arrival, owner)
        _store(application, request, arrival, identity)
    return Linked(identity, owner, created=created)


def _refuse_wrong_person(
    request: AuthorizationRequest, identity: LinkedIdentity | None, *, user: AbstractBaseUser | None
) -> None:
    """Who may end up with this subject, by the purpose for which the person left."""
    owner_id = identity.user_id if identity else None
    if request.purpose == Purpose.SIGN_IN and user is not None and owner_id != user.pk:
        raise UserChanged
    if request.purpose == Purpose.RENEW and owner_id != request.user_id:
        raise SubjectChanged
    if identity is None:
        return
    if request.purpose == Purpose.LINK and owner_id != request.user_id:
        raise SubjectTaken
    if not identity.user.is_active:
        raise UserInactive


def _bound(
    application: Application,
    request: AuthorizationRequest,
    arrival: Arrival,
    *,
    owner: AbstractBaseUser,
    created: bool,
) -> LinkedIdentity:
    """A new identity of ``owner``, who may hold one subject under an application and no more."""
    mine = LinkedIdentity.objects.of_user(
        owner.pk, application=application.alias, environment=application.environment
    )
    if not created and mine.exists():
        raise UserHoldsAnother
    identity = LinkedIdentity.objects.create(
        user_id=owner.pk,
        application=application.alias,
        environment=application.environment,
        subject=arrival.subject,
        consent=Consent.REVOKED,
        consent_changed_at=NEVER,
        linked_via=LinkedVia.OAUTH,
    )
    signals.announce(
        signals.identity_linked, LinkedIdentity, identity=identity, user=owner, created=created
    )
    return identity


def _signed_up(
    application: Application, request: AuthorizationRequest, arrival: Arrival
) -> AbstractBaseUser:
    """A new site user, if the site takes one and the address is nobody else's."""
    site = policy.load(application.policy)
    if site.account_with_email(arrival.profile.email) is not None:
        raise EmailTaken
    if not site.may_sign_up(profile=arrival.profile, kyc=arrival.kyc):
        raise SignUpRefused
    fields = policy.writable(site.new_user_fields(profile=arrival.profile, kyc=arrival.kyc))
    user = get_user_model()(**fields)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as invalid:
        names = ", ".join(sorted(invalid.message_dict))
        raise SignUpRefused(f"the user model does not take these fields: {names}") from None
    user.save()
    authorization_requests.complete(request, completed_by=user)
    return user


def _overwrite_user_fields(
    application: Application, arrival: Arrival, user: AbstractBaseUser
) -> None:
    site = policy.load(application.policy)
    fields = policy.writable(
        site.changed_user_fields(user, profile=arrival.profile, kyc=arrival.kyc)
    )
    if not fields:
        return
    for name, value in fields.items():
        setattr(user, name, value)
    user.save(update_fields=list(fields))


def _store(
    application: Application,
    request: AuthorizationRequest,
    arrival: Arrival,
    identity: LinkedIdentity,
) -> None:
    was_granted = identity.consent == Consent.GRANTED
    kyc_before = (identity.kyc_level, identity.kyc_status)
    _take_over(identity, request, arrival)
    if arrival.claims is not None:
        claims.store(application, identity, arrival.claims, arrival.proof)
    _save_unless_withdrawn(identity, request)
    tokens.store(application, identity, arrival.tokens)
    if not was_granted:
        signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
    if (identity.kyc_level, identity.kyc_status) != kyc_before:
        signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)


def _take_over(identity: LinkedIdentity, request: AuthorizationRequest, arrival: Arrival) -> None:
    """Consent counts from when the flow began: a revocation that follows is never older than it.

    Whole seconds, because the service's time-stamps may have no finer ones; at equal times the
    revocation wins.
    """
    consented_at = request.created_at.replace(microsecond=0)
    identity.consent = Consent.GRANTED
    identity.consent_changed_at = max(identity.consent_changed_at, consented_at)
    identity.scopes = list(arrival.scopes)
    if arrival.kyc is not None:
        identity.kyc_level = arrival.kyc.kyc_level
        identity.kyc_status = arrival.kyc.status
        identity.kyc_provider = arrival.kyc.provider
        identity.kyc_verified_at = arrival.kyc.verified_at
    identity.refetch_failures = 0
    identity.last_error = ""


def _save_unless_withdrawn(identity: LinkedIdentity, request: AuthorizationRequest) -> None:
    """Save, unless the person took consent back, or asked to be erased, since the flow began.

    Both looks are needed: a revocation that commits while this waits for the row is seen in the
    row's own columns, not in the events that this statement's snapshot knows.
    """
    withdrawal = WebhookEvent.objects.filter(
        subject_digest=identity.subject_digest,
        event_type__in=WITHDRAWALS,
        received_at__gte=request.created_at,
        occurred_at__gte=request.created_at - CLOCK_SKEW,
    )
    revoked_since = Q(
        consent=Consent.REVOKED, consent_changed_at__gte=request.created_at.replace(microsecond=0)
    )
    saved = LinkedIdentity.objects.filter(
        ~Exists(withdrawal), ~revoked_since, pk=identity.pk
    ).update(updated_at=timezone.now(), **{name: getattr(identity, name) for name in TAKEN_OVER})
    if not saved:
        raise ConsentWithdrawn
