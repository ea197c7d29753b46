"""The list of all tables with personal data. Pages, export and erasure use this list."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model, Q, QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext

from django_identity import database
from django_identity.lifecycle.ground.values import ClaimValue
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    SubjectLock,
    TokenGrant,
    WebhookEvent,
)
from django_identity.models.flows import COMPLETED
from django_identity.policy import profile_fields

MOST_SHOWN = 100
EVENTS = "webhookevent"
#: What an erasure does not delete by itself.
WITH_THE_IDENTITY = (StoredClaim, TokenGrant, SubjectLock)
#: What only a machine reads: the download has it, the page has not.
FOR_MACHINES = frozenset({"made_account", "payload", "proof_hash", "request_id"})


@dataclass(frozen=True, slots=True)
class Person:
    """Whose data it is: the digest of the subject or an empty text, the account's key or None.

    ``account_stays``: an erasure that leaves the account, and takes the data of the subject.
    """

    subject_digest: str
    user_id: Any
    account_stays: bool = False

    @classmethod
    def of(
        cls,
        identity: LinkedIdentity | None,
        user_id: Any,
        *,
        account_stays: bool = False,
    ) -> "Person":
        """The person of the identity, if there is one, and of the account."""
        subject_digest = ""
        if identity is not None:
            subject_digest = identity.subject_digest
        return cls(subject_digest, user_id, account_stays)

    @property
    def digests(self) -> list[str]:
        """For conditions: events about nobody have an empty digest."""
        return [self.subject_digest] if self.subject_digest else []


@dataclass(frozen=True, slots=True)
class Place:
    """A table with personal data: the condition for a person's rows, and the columns ``shown``.

    The download has all of them, the page those ``for_people``. A test lists the columns that are
    not shown.
    """

    model: type[Model]
    belongs_to: Callable[[Person], Q]
    shown: tuple[str, ...]

    @property
    def table(self) -> str:
        return self.model._meta.model_name or ""

    @property
    def label(self) -> str:
        return self.model._meta.label

    @property
    def for_people(self) -> tuple[str, ...]:
        return tuple(name for name in self.shown if name not in FOR_MACHINES)

    def rows(self, person: Person) -> QuerySet[Any]:
        return self.model._default_manager.filter(self.belongs_to(person))


#: The label of a column, and its value as people read it.
Fact = tuple[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Section:
    """The records of one table about a person.

    ``count``: the number of all records; ``records``: the newest ones.
    """

    table: str
    count: int
    records: tuple[list[Fact], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Dossier:
    """The data of the account page: the identity, and all records.

    ``names``: labels and values of the account's name and e-mail address.
    """

    identity: LinkedIdentity | None
    grant: TokenGrant | None
    sections: tuple[Section, ...]
    names: tuple[Fact, ...]


def _is_of_subject(person: Person) -> Q:
    return Q(subject_digest__in=person.digests)


def _is_of_identity(person: Person) -> Q:
    return Q(identity__subject_digest__in=person.digests)


def _is_started_by(person: Person) -> Q:
    """What the account started is its own, if it stays."""
    if person.account_stays:
        return Q(user_id__in=[])
    # In a list, ``None`` matches no row.
    return Q(user_id__in=[person.user_id])


PLACES: tuple[Place, ...] = (
    Place(
        LinkedIdentity,
        _is_of_subject,
        shown=(
            "environment",
            "subject",
            "consent",
            "signed_in_at",
            "revoked_at",
            "revoked_by",
            "linked_via",
            "made_account",
            "scopes",
            "kyc_level",
            "kyc_status",
            "kyc_provider",
            "kyc_verified_at",
            "kyc_said_at",
            "credential_issued_at",
            "credential_expires_at",
            "connect_issued_at",
            "connect_person",
            "created_at",
        ),
    ),
    Place(
        StoredClaim,
        _is_of_identity,
        shown=(
            "claim_type",
            "provider",
            "value",
            "proof_hash",
            "issued_at",
            "expires_at",
            "valid_until",
            "revoked_at",
        ),
    ),
    Place(
        TokenGrant,
        _is_of_identity,
        shown=(
            "scopes",
            "access_expires_at",
            "refresh_expires_at",
            "needs_reauthorization",
        ),
    ),
    Place(
        WebhookEvent,
        # An emptied event is of an earlier link of the subject, which may be another account's.
        lambda person: _is_of_subject(person) & ~Q(subject=""),
        shown=("event_type", "occurred_at", "received_at", "payload", "outcome"),
    ),
    Place(
        AuthorizationRequest,
        lambda person: _is_started_by(person) | Q(completed_by_id__in=[person.user_id]),
        shown=("purpose", "created_at", "outcome", "next"),
    ),
    Place(
        ConnectRedemption,
        _is_started_by,
        shown=("created_at", "outcome", "request_id"),
    ),
    Place(
        SubjectLock,
        lambda person: Q(digest__in=person.digests),
        shown=("held_at",),
    ),
)


def erase(person: Person, counts: dict[str, int]) -> None:
    """Erase the person from every table, in the current transaction, and add to the ``counts``.

    Events keep their type, times and digests; ``withdrawal.forget`` empties them with the identity.
    A lock stays for a day: this transaction may hold it.
    """
    gone: Counter[str] = Counter()
    for place in reversed(PLACES):
        rows = place.rows(person)
        if place.table == EVENTS:
            gone[place.label] = rows.count()
        elif place.model not in WITH_THE_IDENTITY:
            _total, by_label = rows.delete()
            gone.update(by_label)
    for place in PLACES:
        if place.model is not SubjectLock:
            number = counts.get(place.table, 0)
            counts[place.table] = number + gone[place.label]


def count(person: Person) -> dict[str, int]:
    """Table -> the number of records about the person, of those that have some."""
    counts = {place.table: place.rows(person).count() for place in PLACES}
    return {table: number for table, number in counts.items() if number}


def dossier_of(user: AbstractBaseUser) -> Dossier:
    """The data about ``user`` for the account page."""
    identity = LinkedIdentity.objects.of_user(user.pk)
    grant = TokenGrant.objects.filter(identity=identity).first()
    person = Person.of(identity, user.pk)
    sections = [_section(person, place) for place in PLACES]
    names = _names_of(user).items()
    return Dossier(
        identity,
        grant,
        sections=tuple(section for section in sections if section.records),
        names=tuple((_label_of(user, name), text) for name, text in names),
    )


def export_of(user: AbstractBaseUser) -> dict[str, Any]:
    """The download: table -> all records, the oldest first, and the account's names."""
    linked = LinkedIdentity.objects.filter(user_id=user.pk).first()
    person = Person.of(linked, user.pk)
    tables: dict[str, Any] = {"account": _names_of(user)}
    for place in PLACES:
        rows = place.rows(person).order_by("pk")
        tables[place.table] = list(rows.values(*place.shown))
    return tables


def _section(person: Person, place: Place) -> Section:
    """The newest records of one table about ``person``, with the columns for people only."""
    rows = place.rows(person)
    columns = place.for_people
    newest = rows.only(*columns)
    newest = newest.order_by("-pk")[:MOST_SHOWN]

    records = tuple(_record(row, columns) for row in newest)
    count = len(records)
    if count == MOST_SHOWN:
        # There may be more than were read.
        count = rows.count()
    return Section(place.table, count, records)


def _record(row: Model, columns: tuple[str, ...]) -> list[Fact]:
    record: list[Fact] = []
    for name in columns:
        shown = _for_people(row, name)
        if shown not in (None, "", []):
            record.append((_label_of(row, name), shown))
    return record


def _label_of(row: Model, column: str) -> str:
    """The column's ``verbose_name``."""
    field = row._meta.get_field(column)
    return str(capfirst(getattr(field, "verbose_name", column)))


def _for_people(row: Model, name: str) -> Any:
    """The column as a person reads it: no JSON, and no code that has a name."""
    stored = getattr(row, name)
    if isinstance(row, StoredClaim) and name == "value":
        return _value_of(row)
    is_refused = name == "outcome" and stored not in ("", COMPLETED)
    if is_refused and isinstance(row, AuthorizationRequest | ConnectRedemption):
        return gettext("not completed")
    display = getattr(row, f"get_{name}_display", None)
    if display is None:
        return stored
    return display()


def _value_of(claim: StoredClaim) -> bool | str | None:
    """What the claim says. None if nothing is proven."""
    if claim.value is None:
        return None
    shown = ClaimValue.of(claim).shown
    # An empty value is left out of the page. A claim that is denied is shown, as a no.
    if shown is None:
        return False
    return shown


def _names_of(user: AbstractBaseUser) -> dict[str, str]:
    """The fields of the account that a profile fills, as far as the user model has them."""
    known = database.field_names(user)
    names = [name for name in profile_fields().values() if name in known]
    # The instance may lack them: a site's manager may defer columns.
    account = database.all_users().filter(pk=user.pk)
    stored = account.values(*names).first() or {}
    return {name: text for name, text in stored.items() if text}
