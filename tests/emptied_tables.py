"""A test with transactions of its own ends with empty tables, as after Django's flush, but sooner.

Django empties every table and makes content types and permissions anew with dozens of queries: most
of what such a test costs. Here one query says which tables hold rows, those alone are emptied, and
the rows of these two models stay as the migrations left them. The connection stays open too: on a
server a new one is a new process.
"""

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Max, Model
from django.test import TransactionTestCase

Rows = dict[type[Model], list[Model]]


def keep_rows() -> None:
    """Call it once the tables are made and filled."""
    kept: Rows = {
        model: list(model._default_manager.all()) for model in (ContentType, Permission)
    }

    def empty(self: TransactionTestCase) -> None:
        for alias in self._databases_names(include_mirrors=False):
            _empty(connections[alias], kept)

    TransactionTestCase._fixture_teardown = empty
    TransactionTestCase._should_reload_connections = _stay_connected


def _stay_connected(self: TransactionTestCase) -> bool:
    return False


def _empty(connection: BaseDatabaseWrapper, kept: Rows) -> None:
    with connection.constraint_checks_disabled(), transaction.atomic(connection.alias):
        changed = {
            model: rows
            for model, rows in kept.items()
            if _is_changed(connection.alias, model, rows)
        }
        stay = {model._meta.db_table for model in kept.keys() - changed.keys()}
        with connection.cursor() as cursor:
            for table in _filled(connection):
                if table not in stay:
                    cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
        for model, rows in changed.items():
            model._default_manager.using(connection.alias).bulk_create(rows)


def _filled(connection: BaseDatabaseWrapper) -> list[str]:
    tables = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    query = " UNION ALL ".join(
        f"SELECT '{table}', EXISTS (SELECT 1 FROM {connection.ops.quote_name(table)})"
        for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [table for table, filled in cursor.fetchall() if filled]


def _is_changed(alias: str, model: type[Model], rows: list[Model]) -> bool:
    found = model._default_manager.using(alias).aggregate(
        count=Count("pk"), last=Max("pk")
    )
    return found != {"count": len(rows), "last": max(row.pk for row in rows)}
