"""Statements that PostgreSQL keeps planned: to plan one takes it longer than to run it.

A connection that meets a statement often has it prepared, under a name made of its text. Behind a
pooler that shares its connections to the server among its callers (PgBouncer) none is: what one
transaction has prepared, the next one would look for in another place. A site says so with Django's
own ``DISABLE_SERVER_SIDE_CURSORS``; where it does not, such a pooler is known by the process number
that it tells its callers, which is none of the server's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

from django_identity.lifecycle.events.statements import Slot, Statement, written_out

#: How often a connection runs a statement as it is before it has it prepared: psycopg's own number.
USES_AS_IT_IS = 5
#: SQLSTATE of a name that is there no more, of one that is there already, and of an altered table.
_LOST_OR_STALE = {"26000", "42P05", "0A000"}


@dataclass(slots=True)
class _Session:
    """What a connection of the driver's has met. ``may_prepare``: None until it is found out."""

    may_prepare: bool | None = None
    uses: Counter[Statement] = field(default_factory=Counter)
    prepared: set[Statement] = field(default_factory=set)


_sessions: WeakKeyDictionary[Any, _Session] = WeakKeyDictionary()


def at_its_fastest(statement: Statement) -> Statement:
    """What does the same as ``statement``, sent with psycopg to PostgreSQL over this connection."""
    # As a cursor would: what it opens in place of a dead connection has nothing prepared.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    session = _sessions.setdefault(connection.connection, _Session())
    if statement in session.prepared:
        return _execute(statement)
    session.uses[statement] += 1
    if session.uses[statement] <= USES_AS_IT_IS:
        return statement
    if session.may_prepare is None:
        session.may_prepare = _may_prepare()
    if not session.may_prepare:
        return statement
    with connection.cursor() as cursor:
        cursor.execute(_prepare(statement))
    session.prepared.add(statement)
    return _execute(statement)


def gives_up_over(error: BaseException) -> bool:
    """Whether it says that something prepared is lost or stale; nothing more is prepared then.

    The connection may come back, for a site may pool them (``OPTIONS["pool"]``).
    """
    if getattr(error.__cause__, "sqlstate", "") not in _LOST_OR_STALE:
        return False
    _sessions[connection.connection] = _Session(may_prepare=False)
    return True


def _may_prepare() -> bool:
    """Whether every message of this connection reaches the same process of the server."""
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return False
    driver: Any = connection.connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return bool(cursor.fetchone()[0] == driver.info.backend_pid)


def _prepare(statement: Statement) -> str:
    kept = _kept(statement)
    return f"PREPARE {kept.name} ({', '.join(kept.types)}) AS {kept.sql}"


@cache
def _execute(statement: Statement) -> Statement:
    kept = _kept(statement)
    places = ", ".join(["%s"] * len(kept.slots))
    return Statement(lambda: (f"EXECUTE {kept.name} ({places})", kept.slots))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A statement with its places numbered, each with its type; what is filled in alike is one."""

    sql: str
    types: Sequence[str]
    slots: Sequence[Slot]

    @property
    def name(self) -> str:
        """Two statements of one name are the same, whoever prepared them."""
        return "django_identity_" + sha256(repr((self.sql, self.types)).encode()).hexdigest()[:16]


@cache
def _kept(statement: Statement) -> _Kept:
    sql, slots = written_out(*statement.compiled())
    places = [(slot.name, str(slot.output_field.cast_db_type(connection))) for slot in slots]
    distinct = dict(zip(places, slots, strict=True))
    numbers = {place: f"${number}" for number, place in enumerate(distinct, start=1)}
    numbered = sql % tuple(numbers[place] for place in places)
    return _Kept(numbered, [kind for _, kind in distinct], [*distinct.values()])
