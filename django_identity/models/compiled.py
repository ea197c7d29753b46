"""Compile the queries of every request once. Django would compile them at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.models import Expression, Field, QuerySet
from django.db.models.sql.compiler import SQLCompiler


class Given(Expression):
    """The placeholder for the value of each call."""

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class CompiledQuery:
    """A ``values_list`` query, compiled for one database.

    ``build`` returns the query. Its argument is a ``Given``, the placeholder for a value of
    ``field``. The rows are the same as those of the plain query.
    """

    def __init__(
        self, build: Callable[[Given], QuerySet[Any, Any]], field: Field[Any, Any], using: str
    ) -> None:
        self._field, self._using = field, using
        compiler: Any = build(Given(output_field=field)).query.get_compiler(using)
        self._sql, self._params = compiler.as_sql()
        columns = [column for column, *_ in compiler.select]
        self._converters = list(compiler.get_converters(columns).items())

    def rows(self, value: Any) -> list[list[Any]]:
        """The rows for ``value``."""
        connection: Any = connections[self._using]
        prepared = self._field.get_prep_value(value)
        given = self._field.get_db_prep_value(prepared, connection, prepared=True)
        params = [given if isinstance(param, Given) else param for param in self._params]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, params)
            found = [list(row) for row in cursor.fetchall()]
        for row in found:
            for place, (converters, expression) in self._converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, connection)
        return found
