"""The list of all tables with personal data. Pages, export and erasure use this list."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, Q, QuerySet
from django.utils.functional import Promise

from django_identity import labels
from django_identity.conf import Application
from django_identity.lifecycle.events import rows
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)

MOST_SHOWN = 100
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The person to erase: the subject, and the key of the linked user or None."""

    subject_digest: str
    user_id: Any


def _delete(rows: QuerySet[Any]) -> int:
    """Delete ``rows`` with their dependent rows. Returns the number of ``rows``."""
    _, deleted = rows.delete()
    return deleted.get(rows.model._meta.label, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A table with personal data. Columns are ``shown`` or ``withheld`` (secrets, internals).

    ``of_forgotten`` finds the rows of an erasure, and ``erase`` erases them.
    """

    model: type[Model]
    of_user: Callable[[AbstractBaseUser], QuerySet[Any]]
    of_forgotten: Callable[[Forgotten], QuerySet[Any]]
    shown: tuple[str, ...]
    withheld: tuple[str, ...]
    erase: Callable[[QuerySet[Any]], int] = _delete


@dataclass(frozen=True, slots=True)
class HeldField:
    """One value: as stored, and as text for the person."""

    name: str
    label: str | Promise
    stored: Any
    shown: Any

    @property
    def is_empty(self) -> bool:
        """Whether the value is empty."""
        return self.stored is None or self.stored == "" or self.stored == []


@dataclass(frozen=True, slots=True)
class HeldKind:
    """The records of one table about a person: their name, and why the site stores them.

    ``count``: the number of all records; ``records``: the newest ones.
    """

    title: str | Promise
    purpose: str | Promise
    count: int
    records: tuple[tuple[HeldField, ...], ...]

    @property
    def has_more(self) -> bool:
        return self.count > len(self.records)


@dataclass(frozen=True, slots=True)
class Dossier:
    """The data of the account page: the identity under one application, and all records.

    ``needs_reauthorization``: the person must renew to get new claims.
    """

    identity: LinkedIdentity | None
    claims: tuple[StoredClaim, ...]
    kinds: tuple[HeldKind, ...]
    needs_reauthorization: bool = False


def _events_of(user: AbstractBaseUser) -> QuerySet[WebhookEvent]:
    mine = LinkedIdentity.objects.filter(user_id=user.pk).values("subject_digest")
    return WebhookEvent.objects.filter(subject_digest__in=mine)


def _requested_by(forgotten: Forgotten) -> Q:
    """Condition for the rows that the user started or completed. Without a user: no rows."""
    if forgotten.user_id is None:
        return Q(pk__in=())
    return Q(user_id=forgotten.user_id) | Q(completed_by_id=forgotten.user_id)


PLACES: tuple[Place, ...] = (
    Place(
        LinkedIdentity,
        lambda user: LinkedIdentity.objects.filter(user_id=user.pk),
        lambda forgotten: LinkedIdentity.objects.filter(subject_digest=forgotten.subject_digest),
        shown=(
            "application", "environment", "subject", "consent", "consent_changed_at", "linked_via",
            "account_made",
            "scopes", "kyc_level", "kyc_status", "kyc_provider", "kyc_verified_at",
            "kyc_checked_at",
            "credential_issued_at", "credential_expires_at", "connect_request_id",
            "connect_issued_at", "connect_person", "created_at", "updated_at",
        ),
        withheld=(
            "id", "user", "subject_digest", "credential", "credential_kid",
            "refetch_due_at", "refetch_taken_until", "refetch_started", "refetch_failures",
            "last_error", "signed_in_at", "revoked_at", "claims_revoked_at", "kyc_changed_at",
            "kyc_rank",
            "last_event_digest",
        ),
    ),
    Place(
        StoredClaim,
        lambda user: StoredClaim.objects.filter(identity__user_id=user.pk),
        lambda forgotten: StoredClaim.objects.filter(
            identity__subject_digest=forgotten.subject_digest
        ),
        shown=(
            "claim_type", "provider", "value", "proof_hash", "issued_at", "expires_at",
            "valid_until", "revoked",
        ),
        withheld=("id", "identity", "created_at", "updated_at"),
    ),
    Place(
        TokenGrant,
        lambda user: TokenGrant.objects.filter(identity__user_id=user.pk),
        lambda forgotten: TokenGrant.objects.filter(
            identity__subject_digest=forgotten.subject_digest
        ),
        shown=("scopes", "access_expires_at", "refresh_expires_at", "needs_reauthorization"),
        withheld=(
            "id", "identity", "access_token", "refresh_token", "generation", "lease_until",
            "retry_at", "created_at", "updated_at",
        ),
    ),
    Place(
        WebhookEvent,
        _events_of,
        lambda forgotten: WebhookEvent.objects.filter(subject_digest=forgotten.subject_digest),
        erase=rows.empty,
        shown=("event_type", "occurred_at", "received_at", "payload", "outcome"),
        withheld=(
            "id", "application", "event_id", "event_digest", "subject", "subject_digest",
            "kept", "handled_at", "handled_by", "attempts", "next_attempt_at", "error",
            "created_at", "updated_at",
        ),
    ),
    Place(
        AuthorizationRequest,
        lambda user: AuthorizationRequest.objects.filter(
            Q(user_id=user.pk) | Q(completed_by_id=user.pk)
        ),
        lambda forgotten: AuthorizationRequest.objects.filter(_requested_by(forgotten)),
        shown=("purpose", "created_at", "outcome", "next"),
        withheld=(
            "id", "state_digest", "browser_digest", "application", "environment", "user",
            "completed_by", "code_verifier", "redirect_uri", "scopes", "expires_at",
            "consumed_at", "updated_at",
        ),
    ),
    Place(
        ConnectRedemption,
        lambda user: ConnectRedemption.objects.filter(
            Q(user_id=user.pk) | Q(completed_by_id=user.pk)
        ),
        lambda forgotten: ConnectRedemption.objects.filter(_requested_by(forgotten)),
        shown=("created_at", "outcome"),
        withheld=(
            "id", "code_digest", "application", "environment", "user", "completed_by",
            "expires_at", "kyc_url", "updated_at",
        ),
    ),
)  # fmt: skip


def erase(forgotten: Forgotten) -> dict[str, int]:
    """Erase the person from every table, in the current transaction. Returns the counts."""
    return {_table(place): place.erase(place.of_forgotten(forgotten)) for place in reversed(PLACES)}


def dossier_of(user: AbstractBaseUser, *, application: Application) -> Dossier:
    """The data about ``user`` for the account page, with their identity under ``application``."""
    identity = (
        LinkedIdentity.objects.of_user(
            user.pk, application=application.alias, environment=application.environment
        )
        .prefetch_related("claims")
        .first()
    )
    claims = tuple(identity.claims.all()) if identity else ()
    held = tuple(kind for kind in _newest_about(user) if kind.records)
    return Dossier(identity, claims, held, _needs_reauthorization(identity))


def export_of(user: AbstractBaseUser) -> Iterator[str]:
    """Yield the download in pieces: one JSON object with table -> records.

    At most ``ROWS_AT_ONCE`` records are in memory at a time.
    """
    opening = "{"
    for place in PLACES:
        yield f'{opening}\n"{_table(place)}": ['
        separator = "\n"
        for records in _batches(place.of_user(user).values("pk", *place.shown)):
            told = [{name: record[name] for name in place.shown} for record in records]
            texts = (json.dumps(record, cls=DjangoJSONEncoder) for record in told)
            yield separator + ",\n".join(texts)
            separator = ",\n"
        yield "]"
        opening = ","
    yield "}\n"


def _newest_about(user: AbstractBaseUser) -> Iterator[HeldKind]:
    """The newest records of each table about ``user``, with the shown columns only."""
    for place in PLACES:
        rows = place.of_user(user)
        newest = rows.only(*place.shown).order_by("-pk")[:MOST_SHOWN]
        records = tuple(tuple(_field(row, name) for name in place.shown) for row in newest)
        count = len(records) if len(records) < MOST_SHOWN else rows.count()
        yield HeldKind(*labels.kind_of(_table(place)), count, records)


def _batches(rows: QuerySet[Any, dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """All of ``rows`` in batches, in the order of their keys.

    Not ``iterator()``: it needs a server-side cursor, which a pooler may not keep.
    """
    batch = list(rows.order_by("pk")[:ROWS_AT_ONCE])
    while batch:
        yield batch
        batch = list(rows.filter(pk__gt=batch[-1]["pk"]).order_by("pk")[:ROWS_AT_ONCE])


def _table(place: Place) -> str:
    return place.model._meta.model_name or ""


def _needs_reauthorization(identity: LinkedIdentity | None) -> bool:
    grant = TokenGrant.objects.filter(identity=identity).first() if identity else None
    return grant is not None and grant.needs_reauthorization


def _field(record: Model, name: str) -> HeldField:
    stored = getattr(record, name)
    display = getattr(record, f"get_{name}_display", None)
    return HeldField(name, labels.label_of(name), stored, display() if display else stored)
