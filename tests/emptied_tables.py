"""A test with transactions of its own ends with empty tables, as after Django's flush, but sooner.

Django empties every table and makes content types and permissions anew with dozens of queries: most
of what such a test costs. Here one query says which tables have rows, those alone are emptied, and
content types and permissions stay as the migrations left them. The connection stays open too: on
a server a new one is a new process.
"""

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT = {model._meta.db_table for model in (ContentType, Permission)}


def empty_sooner() -> None:
    """Call it once the tables are made and filled."""
    queries = {alias: _query(connections[alias]) for alias in connections}

    def empty(self: TransactionTestCase) -> None:
        for alias in self._databases_names(include_mirrors=False):
            _empty(connections[alias], queries[alias])

    TransactionTestCase._fixture_teardown = empty
    TransactionTestCase._should_reload_connections = lambda _self: False


def _query(connection: BaseDatabaseWrapper) -> str:
    """Each table, and whether it has rows."""
    tables = connection.introspection.django_table_names(
        only_existing=True,
        include_views=False,
    )
    quoted = connection.ops.quote_name
    return " UNION ALL ".join(
        f"SELECT '{table}', EXISTS (SELECT 1 FROM {quoted(table)})"
        for table in tables
        if table not in KEPT
    )


def _empty(connection: BaseDatabaseWrapper, query: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(query)
        filled = [table for table, has_rows in cursor.fetchall() if has_rows]
        if filled:
            with (
                connection.constraint_checks_disabled(),
                transaction.atomic(connection.alias),
            ):
                for table in filled:
                    cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
