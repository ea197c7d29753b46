"""Statements that Django's compiler makes once, and that are only filled in afterwards.

For a hot path: compiling an ORM statement takes longer than the database takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, Func, Model, QuerySet
from django.db.models.sql import DeleteQuery, Query, UpdateQuery

Compiled = tuple[str, Sequence[object]]


class Slot(Expression):
    """A place in a statement for the value ``name``, which goes in as ``field`` would store it."""

    def __init__(self, name: str, stored_as: Field[Any, Any]) -> None:
        super().__init__(output_field=stored_as)
        self.name = name
        self.takes_text = isinstance(stored_as, (models.CharField, models.TextField))

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", (self,)

    def prepared(self, values: Mapping[str, object], using: BaseDatabaseWrapper) -> object:
        """The value of this slot, in the database driver's own terms.

        What a field would do with texts and moments is written out: there are forty of them.
        """
        value = values[self.name]
        if value is None:
            return None
        if isinstance(value, str) and self.takes_text:
            return str(value)
        if isinstance(value, datetime):
            return using.ops.adapt_datetimefield_value(value)
        return self.output_field.get_db_prep_save(value, connection=using)


def moment(name: str) -> Slot:
    return Slot(name, models.DateTimeField())


def text(name: str) -> Slot:
    return Slot(name, models.CharField())


class Octets(Func):
    """A text column's bytes, which are equal under any collation only if the texts are."""

    output_field = models.BinaryField()
    template = "CAST(%(expressions)s AS BLOB)"

    def as_mysql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(compiler, connection, template="CAST(%(expressions)s AS BINARY)")

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(compiler, connection, template="CONVERT_TO(%(expressions)s, 'UTF8')")


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One statement. ``compile`` makes it at its first use with each kind of database."""

    compile: Callable[[], Compiled]
    _by_vendor: dict[str, Compiled] = field(default_factory=dict)

    def compiled(self) -> Compiled:
        """Its SQL and parameters, slots among them."""
        compiled = self._by_vendor.get(connection.vendor)
        if compiled is None:
            compiled = self._by_vendor[connection.vendor] = self.compile()
        return compiled

    def filled(self, values: Mapping[str, object]) -> tuple[str, list[Any]]:
        """Its SQL and parameters, with ``values`` in its slots."""
        sql, parameters = self.compiled()
        # Itself, not the stand-in that looks it up anew at each touch.
        using = connections[connection.alias]
        return sql, [
            parameter.prepared(values, using) if isinstance(parameter, Slot) else parameter
            for parameter in parameters
        ]

    def run(self, values: Mapping[str, object]) -> int:
        """Run it and return how many rows it concerned."""
        with connection.cursor() as cursor:
            cursor.execute(*self.filled(values))
            return int(cursor.rowcount)

    def row(self, values: Mapping[str, object]) -> tuple[Any, ...] | None:
        """Run it and return its one row, if there is one."""
        with connection.cursor() as cursor:
            cursor.execute(*self.filled(values))
            found: tuple[Any, ...] | None = cursor.fetchone()
            return found


def inserting(
    model: type[Model],
    *,
    prefix: str = "",
    computed: Mapping[str, Any] | None = None,
) -> Statement:
    """An INSERT of one row of ``model``: a slot for each column but the key, by its name.

    ``prefix`` stands before the slots' names, where another model's are filled in with them.
    ``computed``: columns that get an expression instead.
    """

    def compiled() -> Compiled:
        quoted = connection.ops.quote_name
        fields = [column for column in model._meta.concrete_fields if not column.primary_key]
        columns = ", ".join(quoted(str(column.column)) for column in fields)
        given = [
            standing_alone((computed or {}).get(column.name, Slot(prefix + column.name, column)))
            for column in fields
        ]
        places = ", ".join(sql for sql, _ in given)
        parameters = [parameter for _, parameters in given for parameter in parameters]
        into = f"INSERT INTO {quoted(model._meta.db_table)} ({columns})"
        return f"{into} VALUES ({places})", parameters

    return Statement(compiled)


def standing_alone(expression: Any) -> Compiled:
    """The SQL of an expression that names no column of the statement it stands in."""
    query = Query(None)
    compiler = query.get_compiler(connection=connection)
    sql, parameters = compiler.compile(expression.resolve_expression(query, allow_joins=False))
    return sql, parameters


def updating(rows: Callable[[], QuerySet[Any]], /, **changes: object) -> Statement:
    """An UPDATE of ``rows()``, which may hold slots, as ``changes`` may."""

    def compiled() -> Compiled:
        query: Any = rows().query.chain(UpdateQuery)
        query.add_update_values(changes)
        sql, parameters = query.get_compiler(connection=connection).as_sql()
        return sql, parameters

    return Statement(compiled)


def deleting(rows: Callable[[], QuerySet[Any]]) -> Statement:
    """A DELETE of ``rows()``, which may hold slots and must be of one table."""

    def compiled() -> Compiled:
        query: Any = rows().query.chain(DeleteQuery)
        sql, parameters = query.get_compiler(connection=connection).as_sql()
        return sql, parameters

    return Statement(compiled)


def selecting(rows: Callable[[], QuerySet[Any, Any]]) -> Statement:
    """A SELECT of ``rows()``, which may hold slots."""

    def compiled() -> Compiled:
        sql, parameters = rows().query.get_compiler(connection=connection).as_sql()
        return sql, parameters

    return Statement(compiled)


def written_out(sql: str, parameters: Sequence[object]) -> tuple[str, list[Slot]]:
    """``sql`` with what is the same each time in it: only slots are left to fill.

    The driver (psycopg) reads a statement anew each time if it has more than 50 parameters.
    """
    driver: Any = connection.ops

    def written(parameter: object) -> str:
        if isinstance(parameter, Slot):
            return "%s"
        return str(driver.compose_sql("%s", [parameter])).replace("%", "%%")

    first, *texts = sql.split("%s")
    pairs = zip(map(written, parameters), texts, strict=True)
    slots = [parameter for parameter in parameters if isinstance(parameter, Slot)]
    return first + "".join(place + text for place, text in pairs), slots
