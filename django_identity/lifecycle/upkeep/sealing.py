"""The list of all sealed columns, and the rotation of their values to the first key.

If no key opens a value, it is left unchanged: the key may only be missing from the settings. Other
code treats such a value as absent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, vault
from django_identity.exceptions import SealedValueUnreadable
from django_identity.models import AuthorizationRequest, LinkedIdentity, TokenGrant

ROWS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column with sealed values. ``application``: the path to the application's alias."""

    model: type[Model]
    name: str
    application: str = "application"

    @property
    def label(self) -> str:
        return f"{self.model._meta.object_name}.{self.name}"

    def held(self) -> QuerySet[Any]:
        """The rows with a value in the column."""
        return self.model._default_manager.exclude(**{self.name: ""})


COLUMNS: tuple[SealedColumn, ...] = (
    SealedColumn(LinkedIdentity, "credential"),
    SealedColumn(TokenGrant, "access_token", "identity__application"),
    SealedColumn(TokenGrant, "refresh_token", "identity__application"),
    SealedColumn(AuthorizationRequest, "code_verifier"),
)
"""All of them: what rotates keys or looks for values that no key opens reads this."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The result for some values of one column. ``overtaken``: a newer value was stored."""

    column: str
    resealed: int = 0
    overtaken: int = 0
    unreadable: int = 0

    @property
    def seen(self) -> int:
        return self.resealed + self.overtaken + self.unreadable


def count_outdated() -> int:
    """The number of values that are not under the first key of their application."""
    places = product(conf.applications(), COLUMNS)
    return sum(_outdated(column, application).count() for application, column in places)


def rotate_keys(*, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
    """Re-encrypt all values under the first key, ``size`` rows at a time; commit each batch.

    It can be stopped between two batches and started again, because each value shows its key. A
    value that the site stores meanwhile is under the first key already and is never overwritten.
    """
    for application, column in product(conf.applications(), COLUMNS):
        rows = _outdated(column, application).order_by("pk")
        if column.model is TokenGrant:
            rows = rows.select_related("identity")
        batch = list(rows[:size])
        while batch:
            yield _rotate_batch(column, application, batch)
            batch = list(rows.filter(pk__gt=batch[-1].pk)[:size])


def find_unreadable(column: SealedColumn) -> QuerySet[Any]:
    """The rows with a value that no key opens, including rows of removed applications."""
    known = Q()
    for application in conf.applications():
        for secret in application.encryption_keys:
            prefix = {f"{column.name}__startswith": vault.prefix_of(secret)}
            known |= Q(**{column.application: application.alias}, **prefix)
    return column.held().exclude(known)


def _outdated(column: SealedColumn, application: conf.Application) -> QuerySet[Any]:
    current = vault.prefix_of(application.encryption_keys[0])
    rows = column.held().filter(**{column.application: application.alias})
    return rows.exclude(**{f"{column.name}__startswith": current})


@sensitive_variables()
def _rotate_batch(column: SealedColumn, application: conf.Application, rows: list[Any]) -> Batch:
    resealed, unreadable = {}, 0
    for row in rows:
        sealed, context = getattr(row, column.name), row.sealing_context(column.name)
        try:
            fresh = vault.reseal(sealed, keys=application.encryption_keys, context=context)
        except SealedValueUnreadable:
            unreadable += 1
        else:
            resealed[row.pk] = (sealed, fresh)
    # Only the writes are in the transaction, so that locks are short.
    with database.atomic():
        written = 0
        for pk, (sealed, fresh) in resealed.items():
            unchanged = column.model._default_manager.filter(pk=pk, **{column.name: sealed})
            written += unchanged.update(**{column.name: fresh})
    return Batch(column.label, written, len(resealed) - written, unreadable)
