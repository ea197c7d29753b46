"""Statements that Django's compiler makes once, and that are only filled in afterwards.

For a hot path: compiling an ORM statement takes longer than the database takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import connection, connections, models, transaction
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Ran:
    """How a batch went. ``look``: the row that its look found, if it looked."""

    has_changed: bool
    look: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Statements of one transaction, of which ``change`` decides.

    ``after`` holds what follows a change, each about a table of its own, and conditional on the
    change in its own words too; ``look`` is a SELECT of one row for when there was none.
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
        with connection.cursor() as wrapped:
            wrapped.execute(*self._message.filled(values))
            results: Any = wrapped.cursor
            for _ in self.first:
                results.nextset()
            if self.change and results.rowcount:
                return Ran(True, None)
            if not self.look:
                return Ran(False, None)
            for _ in self.change:
                results.nextset()
            return Ran(False, results.fetchone())

    @cached_property
    def _message(self) -> Statement:
        return Statement(self._as_one)

    def _as_one(self) -> Compiled:
        parts = [statement.compiled() for statement in self.first + self.change]
        at_last = [statement.compiled() for statement in self.after + self.look]
        if at_last:
            parts.append(_together(at_last))
        return _written_out(
            "; ".join(sql for sql, _ in parts), [one for _, given in parts for one in given]
        )

    def _run_in_turn(self, values: Mapping[str, object]) -> Ran:
        for statement in self.first:
            statement.run(values)
        if any(statement.run(values) for statement in self.change):
            for statement in self.after:
                statement.run(values)
            return Ran(True, None)
        return Ran(False, self.look[0].row(values) if self.look else None)


def _together(compiled: Sequence[Compiled]) -> Compiled:
    """What PostgreSQL runs as one statement; each part sees what was there before it."""
    *others, (last, _) = compiled
    named = ", ".join(f"other_{number} AS ({sql})" for number, (sql, _) in enumerate(others))
    sql = f"WITH {named} {last}" if others else last
    return sql, [one for _, given in compiled for one in given]


def _written_out(sql: str, parameters: Sequence[object]) -> Compiled:
    """``sql`` with what is the same each time in it: only slots are left to fill.

    The driver (psycopg) reads a statement anew each time if it has more than 50 parameters.
    """
    driver: Any = connection.ops

    def written_out(parameter: object) -> str:
        if isinstance(parameter, Slot):
            return "%s"
        return str(driver.compose_sql("%s", [parameter])).replace("%", "%%")

    texts, written = sql.split("%s"), map(written_out, parameters)
    pairs = zip(written, texts[1:], strict=True)
    return texts[0] + "".join(place + text for place, text in pairs), [
        parameter for parameter in parameters if isinstance(parameter, Slot)
    ]


def _takes_many() -> bool:
    """Whether the driver sends several statements with their parameters as one message."""
    options = connection.settings_dict["OPTIONS"]
    driver = getattr(connection, "Database", None)
    return getattr(driver, "__name__", "") == "psycopg" and not options.get("server_side_binding")


def inserting(
    model: type[Model],
    *,
    prefix: str = "",
    computed: Mapping[str, Any] | None = None,
    waiting: Callable[[], Compiled | None] = lambda: None,
) -> Statement:
    """An INSERT of one row of ``model``: a slot for each column but the key, by its name.

    ``prefix`` stands before the slots' names, where another model's are filled in with them.
    ``computed``: columns that get an expression instead. ``waiting``: a function call of the
    database's, made before the row is written.
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
        parameters = [parameter for _, parameters in given for parameter in parameters]
        into = f"INSERT INTO {quoted(model._meta.db_table)} ({columns})"
        call = waiting()
        if call is None:
            return f"{into} VALUES ({places})", parameters
        into += f" SELECT {places} FROM {call[0]}"  # noqa: S608  as above
        return into, [*parameters, *call[1]]

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
