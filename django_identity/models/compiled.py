"""Compile the queries of every request once. Django would compile them at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Expression, Field, QuerySet
from django.db.models.sql.compiler import SQLCompiler

from django_identity import database


class Given(Expression):
    """The placeholder for the value of each call."""

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class _Compiled:
    """A query as the text of one database, and how its rows are read."""

    def __init__(self, query: QuerySet[Any, Any], using: str) -> None:
        compiler: Any = query.query.get_compiler(using)
        self.sql, self.params = compiler.as_sql()
        columns = [column for column, *_ in compiler.select]
        self.converters = list(compiler.get_converters(columns).items())
        self.model, self.annotations = query.model, compiler.annotation_col_map or {}
        self.names = [field.attname for field in query.model._meta.concrete_fields]
        # The columns of the relation that ``select_related`` joins, at most one, come last.
        related: Any = query.query.select_related or ()
        self.joined: Any = next((query.model._meta.get_field(name) for name in related), None)
        own = len(self.names) + len(self.annotations)
        self.joined_names = [column.target.attname for column in columns[own:]]


class CompiledQuery:
    """A query of the package's database, compiled when it is first used.

    ``build`` returns the query. Its argument is a ``Given``, the placeholder for a value of
    ``field``. The results are the same as those of the plain query.
    """

    def __init__(
        self, build: Callable[[Given], QuerySet[Any, Any]], field: Field[Any, Any]
    ) -> None:
        self._build, self._field = build, field
        self._of_alias: dict[str, _Compiled] = {}

    def rows(self, value: Any) -> list[list[Any]]:
        """The rows of a ``values_list`` query for ``value``."""
        connection: Any = database.connection()
        return self._rows(value, self._compiled(connection.alias), connection)

    def instances(self, value: Any) -> Iterator[Any]:
        """The instances of a query without ``values_list`` for ``value``, with annotations."""
        connection: Any = database.connection()
        compiled = self._compiled(connection.alias)
        width = len(compiled.names)
        for row in self._rows(value, compiled, connection):
            instance = compiled.model.from_db(connection.alias, compiled.names, row[:width])
            for name, place in compiled.annotations.items():
                setattr(instance, name, row[place])
            if compiled.joined is not None:
                values = row[-len(compiled.joined_names) :]
                joined = compiled.joined.related_model.from_db(
                    connection.alias, compiled.joined_names, values
                )
                compiled.joined.set_cached_value(instance, joined)
            yield instance

    def _compiled(self, using: str) -> _Compiled:
        if using not in self._of_alias:
            query = self._build(Given(output_field=self._field)).using(using)
            self._of_alias[using] = _Compiled(query, using)
        return self._of_alias[using]

    def _rows(self, value: Any, compiled: _Compiled, connection: Any) -> list[list[Any]]:
        prepared = self._field.get_prep_value(value)
        given = self._field.get_db_prep_value(prepared, connection, prepared=True)
        params = [given if isinstance(param, Given) else param for param in compiled.params]
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, params)
            found = [list(row) for row in cursor.fetchall()]
        for row in found:
            for place, (converters, expression) in compiled.converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, connection)
        return found
