"""Where an audit can look: the tables of all installed models, and what of a site it cannot read.

``audit`` looks there. Whatever is left out of its findings has to be named here.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from django.apps import apps
from django.db import DatabaseError, connections, models, router
from django.db.models import QuerySet

from django_identity.models import SubjectLock, WebhookEvent

# Nobody's name, address or subject is in these.
WITHOUT_TEXT = (
    models.BooleanField,
    models.DateField,
    models.DecimalField,
    models.DurationField,
    models.FloatField,
    models.IntegerField,
    models.TimeField,
)
# The hash of a password: by chance, each short name stands in some.
RANDOM_TEXT = {"password"}
# An emptied event keeps its digest until it is purged, so that a repeat is known; a lock for a day.
KEPT_BY_US = {(WebhookEvent, "subject_digest"), (SubjectLock, "digest")}

Column: TypeAlias = "models.Field[Any, Any]"
Table: TypeAlias = "QuerySet[Any]"
#: A database, model or column -> why it is not read.
Unread: TypeAlias = dict[str, str]


def tables() -> tuple[list[Table], Unread]:
    """All rows of each installed model, and what cannot be read."""
    installed = apps.get_models(include_auto_created=True)
    wanted = [model for model in installed if not model._meta.proxy]
    found: list[Table] = []
    unread: Unread = {}
    for alias in connections:
        try:
            here = list(_tables_in(alias, wanted))
            unread |= _without_model(alias, here)
        except Exception as error:  # noqa: BLE001  it may be away, or its driver missing
            unread[alias] = type(error).__name__
        else:
            found += here

    with_table = {table.model for table in found}
    for model in wanted:
        if model not in with_table:
            unread[model._meta.label] = "no table"
    return found, unread


def _tables_in(alias: str, wanted: Iterable[type[models.Model]]) -> Iterator[Table]:
    introspection = connections[alias].introspection
    names = set(introspection.table_names(include_views=True))
    for model in wanted:
        is_here = model._meta.db_table in names
        if is_here and _is_kept_in(alias, model):
            # Not by a manager of the site, which may hide some rows.
            yield QuerySet(model, using=alias)


def _is_kept_in(alias: str, model: type[models.Model]) -> bool:
    """Whether the site has rows of the model there, and no copy such as a read replica.

    A router may let nobody migrate a database of somebody else's, and write to it all the same.
    """
    if router.allow_migrate_model(alias, model):
        return True
    return bool(router.db_for_write(model) == alias)


def _without_model(alias: str, found: Iterable[Table]) -> Unread:
    """Columns of these tables that no model has, as where a model was written for a part of one."""
    known: dict[str, set[str]] = {}
    labels: dict[str, str] = {}
    for table in found:
        options = table.model._meta
        columns = {field.column.lower() for field in options.local_concrete_fields}
        known.setdefault(options.db_table, set()).update(columns)
        labels.setdefault(options.db_table, options.label)

    unread: Unread = {}
    for name, columns in known.items():
        try:
            unknown = {
                column
                for column in _column_names(alias, name)
                if column.lower() not in columns
            }
            # Few tables have such a column, and to read the types of all takes long.
            if unknown:
                for column in unknown & _columns_with_text(alias, name):
                    unread[f"{labels[name]}.{column}"] = "no field"
        except DatabaseError as error:
            unread[labels[name]] = type(error).__name__
    return unread


def _column_names(alias: str, table: str) -> set[str]:
    """The names of a table's columns."""
    connection = connections[alias]
    quoted = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        # The name of a model's table, and quoted.
        cursor.execute(f"SELECT * FROM {quoted} WHERE 1 = 0")  # noqa: S608
        return {column[0] for column in cursor.description}


def _columns_with_text(alias: str, table: str) -> set[str]:
    """The same, but for those whose type holds no text."""
    introspection = connections[alias].introspection
    with connections[alias].cursor() as cursor:
        described = introspection.get_table_description(cursor, table)
    names: set[str] = set()
    for column in described:
        try:
            kind = introspection.get_field_type(column.type_code, column)
        except KeyError:
            kind = "Field"  # Django does not know the type.
        if not issubclass(getattr(models, kind, models.Field), WITHOUT_TEXT):
            names.add(column.name)
    return names


def columns_of(model: type[models.Model]) -> list[Column]:
    """The columns in which there may be text. Those of a parent are in the parent's table."""
    columns: list[Column] = []
    for column in model._meta.local_concrete_fields:
        # What a foreign key holds is a value of the column that it points at.
        kind = getattr(column, "target_field", column)
        if isinstance(kind, WITHOUT_TEXT) or column.name in RANDOM_TEXT:
            continue
        if (model, column.name) not in KEPT_BY_US:
            columns.append(column)
    return columns
