"""Statements that Django's compiler makes once, and that are only filled in afterwards.

For a hot path: compiling an ORM statement takes longer than the database takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, Model, QuerySet
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
        """The value of this slot, in the database driver's own terms."""
        value = values[self.name]
        if isinstance(value, str) and self.takes_text:
            return str(value)
        return self.output_field.get_db_prep_save(value, connection=using)


def moment(name: str) -> Slot:
    return Slot(name, models.DateTimeField())


def text(name: str) -> Slot:
    return Slot(name, models.CharField())


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. ``compile`` makes it at its first use with each kind of database."""

    compile: Callable[[], Compiled]
    _by_vendor: dict[str, Compiled] = field(default_factory=dict)

    def filled(self, values: Mapping[str, object]) -> tuple[str, list[Any]]:
        """Its SQL and parameters, with ``values`` in its slots."""
        compiled = self._by_vendor.get(connection.vendor)
        if compiled is None:
            compiled = self._by_vendor[connection.vendor] = self.compile()
        sql, parameters = compiled
        return sql, [
            parameter.prepared(values, connection) if isinstance(parameter, Slot) else parameter
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


@dataclass(frozen=True, slots=True)
class Ran:
    """How a batch went. ``look``: the row that its look found, if it looked."""

    has_changed: bool
    look: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Statements of one transaction, of which ``change`` decides.

    ``after`` holds what follows a change, and is conditional on it in its own words too; ``look``
    is a SELECT of one row for when there was none.
    """

    first: tuple[Statement, ...]
    #: One statement, or none.
    change: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()
    look: tuple[Statement, ...] = ()

    def run(self, values: Mapping[str, object]) -> Ran:
        """Run all of it or nothing.

        PostgreSQL takes it in one message, which is a transaction of its own in which each
        statement sees what was committed before it: what costs the time is the round trips.
        """
        if _takes_many():
            with transaction.atomic() if connection.in_atomic_block else nullcontext():
                return self._run_as_one(values)
        with transaction.atomic():
            return self._run_in_turn(values)

    def _run_as_one(self, values: Mapping[str, object]) -> Ran:
        statements = self.first + self.change + self.after + self.look
        filled = [statement.filled(values) for statement in statements]
        with connection.cursor() as wrapped:
            wrapped.execute(
                "; ".join(sql for sql, _ in filled),
                [parameter for _, parameters in filled for parameter in parameters],
            )
            results: Any = wrapped.cursor
            for _ in self.first:
                results.nextset()
            if self.change and results.rowcount:
                return Ran(True, None)
            if not self.look:
                return Ran(False, None)
            for _ in self.change + self.after:
                results.nextset()
            return Ran(False, results.fetchone())

    def _run_in_turn(self, values: Mapping[str, object]) -> Ran:
        for statement in self.first:
            statement.run(values)
        if any(statement.run(values) for statement in self.change):
            for statement in self.after:
                statement.run(values)
            return Ran(True, None)
        return Ran(False, self.look[0].row(values) if self.look else None)


def _takes_many() -> bool:
    """Whether the driver sends several statements with their parameters as one message."""
    options = connection.settings_dict["OPTIONS"]
    driver = getattr(connection, "Database", None)
    return getattr(driver, "__name__", "") == "psycopg" and not options.get("server_side_binding")


def inserting(
    model: type[Model], *, prefix: str = "", computed: Mapping[str, Any] | None = None
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
            _standing_alone((computed or {}).get(column.name, Slot(prefix + column.name, column)))
            for column in fields
        ]
        places = ", ".join(sql for sql, _ in given)
        sql = f"INSERT INTO {quoted(model._meta.db_table)} ({columns}) VALUES ({places})"  # noqa: S608  names of our own model
        return sql, [parameter for _, parameters in given for parameter in parameters]

    return Statement(compiled)


def _standing_alone(expression: Any) -> Compiled:
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
