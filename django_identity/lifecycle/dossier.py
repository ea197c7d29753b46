"""The one list of where a person's data lives: whatever lists, exports or erases it reads this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model, Q, QuerySet
from django.utils.text import capfirst

from django_identity.conf import Application
from django_identity.models import (
    AuthorizationRequest,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A table with data about a person: ``shown`` to them, or ``withheld`` (secrets, internals)."""

    model: type[Model]
    of_user: Callable[[AbstractBaseUser], QuerySet[Any]]
    shown: tuple[str, ...]
    withheld: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """One record about a person: its kind, and label -> value of what is shown of it."""

    kind: str
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Dossier:
    """What the account page shows: the identity under one application, and everything held."""

    identity: LinkedIdentity | None
    claims: tuple[StoredClaim, ...]
    records: tuple[HeldRecord, ...]


def _events_of(user: AbstractBaseUser) -> QuerySet[WebhookEvent]:
    mine = LinkedIdentity.objects.filter(user_id=user.pk).values("subject_digest")
    return WebhookEvent.objects.filter(subject_digest__in=mine)


PLACES: tuple[Place, ...] = (
    Place(
        LinkedIdentity,
        lambda user: LinkedIdentity.objects.filter(user_id=user.pk),
        shown=(
            "application", "environment", "subject", "consent", "consent_changed_at", "linked_via",
            "scopes", "kyc_level", "kyc_status", "kyc_provider", "kyc_verified_at",
            "credential_issued_at", "credential_expires_at", "created_at", "updated_at",
        ),
        withheld=(
            "id", "user", "subject_digest", "credential",
            "refetch_due_at", "refetch_failures", "last_error",
        ),
    ),
    Place(
        StoredClaim,
        lambda user: StoredClaim.objects.filter(identity__user_id=user.pk),
        shown=(
            "claim_type", "provider", "value", "proof_hash", "issued_at", "expires_at",
            "valid_until", "revoked",
        ),
        withheld=("id", "identity", "created_at", "updated_at"),
    ),
    Place(
        TokenGrant,
        lambda user: TokenGrant.objects.filter(identity__user_id=user.pk),
        shown=("scopes", "access_expires_at", "refresh_expires_at", "needs_reauthorization"),
        withheld=(
            "id", "identity", "access_token", "refresh_token", "generation", "lease_until",
            "created_at", "updated_at",
        ),
    ),
    Place(
        WebhookEvent,
        _events_of,
        shown=("event_type", "occurred_at", "received_at", "payload", "outcome"),
        withheld=(
            "id", "application", "event_id", "event_digest", "subject", "subject_digest",
            "handled_at", "attempts", "next_attempt_at", "error", "created_at", "updated_at",
        ),
    ),
    Place(
        AuthorizationRequest,
        lambda user: AuthorizationRequest.objects.filter(
            Q(user_id=user.pk) | Q(completed_by_id=user.pk)
        ),
        shown=("purpose", "created_at", "outcome", "next"),
        withheld=(
            "id", "state_digest", "browser_digest", "application", "environment", "user",
            "completed_by", "code_verifier", "redirect_uri", "scopes", "expires_at",
            "consumed_at", "updated_at",
        ),
    ),
)  # fmt: skip


def dossier_of(user: AbstractBaseUser, *, application: Application) -> Dossier:
    """All that is held about ``user``, and their identity under ``application`` at the front."""
    identity = (
        LinkedIdentity.objects.of_user(
            user.pk, application=application.alias, environment=application.environment
        )
        .prefetch_related("claims")
        .first()
    )
    claims = tuple(identity.claims.all()) if identity else ()
    return Dossier(identity, claims, tuple(held_about(user)))


def held_about(user: AbstractBaseUser) -> Iterator[HeldRecord]:
    """Every record that this app keeps about ``user``, as far as the person may see it."""
    for place in PLACES:
        kind = capfirst(str(place.model._meta.verbose_name))
        for record in place.of_user(user).order_by("pk"):
            yield HeldRecord(kind, tuple(_shown(record, name) for name in place.shown))


def _shown(record: Model, name: str) -> tuple[str, Any]:
    field = record._meta.get_field(name)
    display = getattr(record, f"get_{name}_display", None)
    label = capfirst(str(getattr(field, "verbose_name", name)))
    return label, display() if display else getattr(record, name)
