"""A test with transactions of its own ends with empty tables, as after Django's flush, but sooner.

Django empties every table and makes content types and permissions anew with dozens of queries: most
of what such a test costs. Here one query says which tables are not as they were, those alone are
emptied, and the rows of these two models stay as the migrations left them. The connection stays
open too: on a server a new one is a new process.
"""

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.test import TransactionTestCase

#: The model of a table, and its rows.
Rows = dict[str, tuple[type[Model], list[Model]]]


def keep_rows() -> None:
    """Call it once the tables are made and filled."""
    kept: Rows = {
        model._meta.db_table: (model, list(model._default_manager.order_by("pk")))
        for model in (ContentType, Permission)
    }
    queries = {alias: _query(connections[alias], kept) for alias in connections}

    def empty(self: TransactionTestCase) -> None:
        for alias in self._databases_names(include_mirrors=False):
            _empty(connections[alias], queries[alias], kept)

    TransactionTestCase._fixture_teardown = empty
    TransactionTestCase._should_reload_connections = _stay_connected


def _stay_connected(self: TransactionTestCase) -> bool:
    return False


def _query(connection: BaseDatabaseWrapper, kept: Rows) -> str:
    """Each table, and whether it has rows; one that keeps rows, whether it has others."""
    quoted = connection.ops.quote_name
    selects = []
    for table in connection.introspection.django_table_names(
        only_existing=True, include_views=False
    ):
        is_changed = f"EXISTS (SELECT 1 FROM {quoted(table)})"
        if table in kept:
            model, rows = kept[table]
            column = quoted(model._meta.pk.column)
            is_changed = (
                f"(SELECT COUNT(*) FROM {quoted(table)}) <> {len(rows)}"
                f" OR (SELECT MAX({column}) FROM {quoted(table)}) <> {rows[-1].pk}"
            )
        selects.append(f"SELECT '{table}', {is_changed}")
    return " UNION ALL ".join(selects)


def _empty(connection: BaseDatabaseWrapper, query: str, kept: Rows) -> None:
    with connection.cursor() as cursor:
        cursor.execute(query)
        changed = [table for table, is_changed in cursor.fetchall() if is_changed]
    if not changed:
        return
    with connection.constraint_checks_disabled(), transaction.atomic(connection.alias):
        with connection.cursor() as cursor:
            for table in changed:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
        for table in kept.keys() & changed:
            model, rows = kept[table]
            model._default_manager.using(connection.alias).bulk_create(rows)
