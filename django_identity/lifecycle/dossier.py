"""The list of all tables with personal data. Pages, export and erasure use this list."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, Q, QuerySet
from django.utils.functional import Promise

from django_identity.conf import Application
from django_identity.lifecycle import withdrawal
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from django_identity.policy import PROFILE_FIELDS
from django_identity.texts import labels

MOST_SHOWN = 100
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The person to erase: the digests of subjects, and the key of their account or None.

    ``places``: application and environment of each subject. ``stays``: the account stays, so only
    the data about the subjects is erased.
    """

    subject_digests: tuple[str, ...]
    user_id: Any
    places: tuple[tuple[str, str], ...]
    stays: bool = False


OfUser = Callable[[AbstractBaseUser], QuerySet[Any]]
OfForgotten = Callable[[Forgotten], QuerySet[Any]]


def _delete(rows: QuerySet[Any]) -> int:
    """Delete ``rows`` with their dependent rows. Returns the number of ``rows``."""
    _, deleted = rows.delete()
    return deleted.get(rows.model._meta.label, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A table with personal data. Only the columns ``shown`` are shown; a test lists the others.

    ``of_forgotten`` finds the rows of an erasure, and ``erase`` erases them.
    """

    model: type[Model]
    of_user: OfUser
    of_forgotten: OfForgotten
    shown: tuple[str, ...]
    erase: Callable[[QuerySet[Any]], int] = _delete


@dataclass(frozen=True, slots=True)
class HeldField:
    """One value: as stored, and as text for the person."""

    name: str
    label: str | Promise
    stored: Any
    shown: Any

    @property
    def is_technical(self) -> bool:
        """Whether the page shows the value among the technical details."""
        return self.name in labels.TECHNICAL

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

    ``needs_reauthorization``: the person must sign in again to get new claims. ``names``: the
    account's name and e-mail address. ``elsewhere``: the identities of the same account under
    other applications.
    """

    identity: LinkedIdentity | None
    claims: tuple[StoredClaim, ...]
    kinds: tuple[HeldKind, ...]
    needs_reauthorization: bool = False
    permission_ends_at: datetime | None = None
    names: tuple[HeldField, ...] = ()
    elsewhere: tuple[LinkedIdentity, ...] = ()


def _events_of(user: AbstractBaseUser) -> QuerySet[WebhookEvent]:
    linked = LinkedIdentity.objects.filter(user_id=user.pk).values("subject_digest")
    # An emptied event is of an earlier link of the subject, which may be another account's.
    return WebhookEvent.objects.filter(subject_digest__in=linked).exclude(subject="")


def _requested_by(forgotten: Forgotten) -> Q:
    """Condition for the rows that the user started or completed. Without a user: no rows.

    What the owner of an account that stays has started and not completed is their own.
    """
    if forgotten.user_id is None:
        return Q(pk__in=())
    completed = Q(completed_by_id=forgotten.user_id)
    if forgotten.stays:
        here = Q(pk__in=())
        for application, environment in forgotten.places:
            here |= Q(application=application, environment=environment)
        return completed & here
    return Q(user_id=forgotten.user_id) | completed


def _of_identity(model: type[Model]) -> tuple[OfUser, OfForgotten]:
    """The rows of ``model`` that belong to the identities of a user, and of a subject."""
    rows = model._default_manager
    return (
        lambda user: rows.filter(identity__user_id=user.pk),
        lambda forgotten: rows.filter(identity__subject_digest__in=forgotten.subject_digests),
    )


def _of_visitor(model: type[Model]) -> tuple[OfUser, OfForgotten]:
    """The rows of ``model`` that a user started or completed."""
    rows = model._default_manager
    return (
        lambda user: rows.filter(Q(user_id=user.pk) | Q(completed_by_id=user.pk)),
        lambda forgotten: rows.filter(_requested_by(forgotten)),
    )


PLACES: tuple[Place, ...] = (
    Place(
        LinkedIdentity,
        lambda user: LinkedIdentity.objects.filter(user_id=user.pk),
        lambda forgotten: LinkedIdentity.objects.filter(
            subject_digest__in=forgotten.subject_digests
        ),
        shown=(
            "application", "environment", "subject", "consent", "signed_in_at", "revoked_at",
            "revoked_by", "linked_via", "account_made", "scopes", "kyc_level", "kyc_status",
            "kyc_provider", "kyc_verified_at", "kyc_said_at", "credential_issued_at",
            "credential_expires_at", "connect_issued_at", "connect_person", "created_at",
            "updated_at",
        ),
    ),
    Place(
        StoredClaim,
        *_of_identity(StoredClaim),
        shown=(
            "claim_type", "provider", "value", "proof_hash", "issued_at", "expires_at",
            "valid_until", "revoked_at",
        ),
    ),
    Place(
        TokenGrant,
        *_of_identity(TokenGrant),
        shown=("scopes", "access_expires_at", "refresh_expires_at", "needs_reauthorization"),
    ),
    Place(
        WebhookEvent,
        _events_of,
        lambda forgotten: WebhookEvent.objects.filter(subject_digest__in=forgotten.subject_digests),
        erase=withdrawal.empty_events,
        shown=("event_type", "occurred_at", "received_at", "payload", "outcome"),
    ),
    Place(
        AuthorizationRequest,
        *_of_visitor(AuthorizationRequest),
        shown=("purpose", "created_at", "outcome", "next"),
    ),
    Place(
        ConnectRedemption,
        *_of_visitor(ConnectRedemption),
        shown=("created_at", "outcome"),
    ),
)  # fmt: skip


def erase(forgotten: Forgotten) -> dict[str, int]:
    """Erase the person from every table, in the current transaction. Returns the counts."""
    return {_table(place): place.erase(place.of_forgotten(forgotten)) for place in reversed(PLACES)}


def counts_of(forgotten: Forgotten) -> dict[str, int]:
    """How many rows an erasure of the person would find in each table."""
    return {_table(place): place.of_forgotten(forgotten).count() for place in PLACES}


def dossier_of(user: AbstractBaseUser, *, application: Application) -> Dossier:
    """The data about ``user`` for the account page, with their identity under ``application``."""
    linked = LinkedIdentity.objects.filter(user_id=user.pk).order_by("application", "environment")
    others = {(each.application, each.environment): each for each in linked}
    identity = others.pop((application.alias, application.environment), None)
    claims = tuple(identity.claims.all()) if identity else ()
    held = tuple(kind for kind in _newest_about(user) if kind.records)
    grant = TokenGrant.objects.filter(identity=identity).first() if identity else None
    return Dossier(
        identity,
        claims,
        held,
        needs_reauthorization=grant is not None and grant.needs_reauthorization,
        permission_ends_at=grant.refresh_expires_at if grant else None,
        names=_names_of(user),
        elsewhere=tuple(others.values()),
    )


def export_of(user: AbstractBaseUser) -> Iterator[str]:
    """Yield the download in pieces: one JSON object with table -> records.

    At most ``ROWS_AT_ONCE`` records are in memory at a time.
    """
    account = {field.name: field.stored for field in _names_of(user)}
    yield f'{{\n"account": {json.dumps(account, cls=DjangoJSONEncoder)}'
    for place in PLACES:
        yield f',\n"{_table(place)}": ['
        separator = "\n"
        for records in _batches(place.of_user(user).values("pk", *place.shown)):
            told = [{name: record[name] for name in place.shown} for record in records]
            texts = (json.dumps(record, cls=DjangoJSONEncoder) for record in told)
            yield separator + ",\n".join(texts)
            separator = ",\n"
        yield "]"
    yield "\n}\n"


def _newest_about(user: AbstractBaseUser) -> Iterator[HeldKind]:
    """The newest records of each table about ``user``, with the shown columns only."""
    for place in PLACES:
        rows = place.of_user(user)
        newest = rows.only(*place.shown).order_by("-pk")[:MOST_SHOWN]
        records = tuple(tuple(_field(row, name) for name in place.shown) for row in newest)
        count = len(records) if len(records) < MOST_SHOWN else rows.count()
        yield HeldKind(*labels.kind_of(_table(place)), count, records)


def _batches(rows: QuerySet[Any, dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """All of ``rows``, in batches by their keys."""
    # Not ``iterator()``: it needs a server-side cursor, which a pooler may not keep.
    batch = list(rows.order_by("pk")[:ROWS_AT_ONCE])
    while batch:
        yield batch
        batch = list(rows.filter(pk__gt=batch[-1]["pk"]).order_by("pk")[:ROWS_AT_ONCE])


def _names_of(user: AbstractBaseUser) -> tuple[HeldField, ...]:
    """The fields of the account that a profile fills, as far as the user model has them."""
    stored = {name: getattr(user, name, "") for name in PROFILE_FIELDS}
    return tuple(
        HeldField(name, labels.label_of(user, name), *(held,) * 2)
        for name, held in stored.items()
        if held
    )


def _table(place: Place) -> str:
    return place.model._meta.model_name or ""


def _field(record: Model, name: str) -> HeldField:
    stored = getattr(record, name)
    display = getattr(record, f"get_{name}_display", None)
    return HeldField(name, labels.label_of(record, name), stored, display() if display else stored)
