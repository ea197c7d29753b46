"""A transaction whose statements reach the database in as few messages as its driver allows.

For a hot path on PostgreSQL, where the round trips cost more than the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from django.db import OperationalError, connection, transaction

from django_identity.lifecycle.events.prepared import at_its_fastest, gives_up_over
from django_identity.lifecycle.events.statements import Compiled, Statement, written_out

TRY_WITHOUT = "what this connection had prepared is lost or stale; tried again it goes without"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement came to: how many rows it concerned, and the first that it returned."""

    concerned: int
    row: tuple[Any, ...]


class Exchange(Protocol):
    """One transaction. It ends well with the block that ``in_few_messages`` opens."""

    def send(
        self, *statements: Statement, values: Mapping[str, object], is_last: bool = False
    ) -> Answer:
        """Run the statements, one or more, and return what the last one came to.

        ``is_last``: the transaction may be committed right after them.
        """

    def cancel(self) -> None:
        """Take back what was sent; nothing more can be."""


@contextmanager
def in_few_messages() -> Iterator[Exchange]:
    """All of the block's statements or none of them.

    Raises ``OperationalError`` for what goes well if it is tried again, too.
    """
    if not _takes_many() or connection.in_atomic_block or not connection.get_autocommit():
        with transaction.atomic():
            yield _InTurn()
        return
    exchange = _InFewMessages()
    try:
        yield exchange
        exchange.commit()
    except BaseException as error:
        gave_up = gives_up_over(error)
        # The transaction is none of Django's: whatever its state, it ends with the connection.
        connection.close()
        if gave_up:
            raise OperationalError(TRY_WITHOUT) from error
        raise


class _InTurn:
    """A message for each statement, in Django's own transaction."""

    def send(
        self, *statements: Statement, values: Mapping[str, object], is_last: bool = False
    ) -> Answer:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(*statement.filled(values))
            return _answer(cursor)

    def cancel(self) -> None:
        transaction.set_rollback(True)


class _InFewMessages:
    """BEGIN goes with the first statements, COMMIT with the last; one message needs neither."""

    def __init__(self) -> None:
        self._has_begun = False
        self._has_ended = False

    def send(
        self, *statements: Statement, values: Mapping[str, object], is_last: bool = False
    ) -> Answer:
        # What fits into one message is a transaction of its own.
        begins = not self._has_begun and not is_last
        sent = tuple(map(at_its_fastest, statements))
        message = _message(sent, begins=begins, ends=self._has_begun and is_last)
        self._has_begun |= begins
        with connection.cursor() as wrapped:
            wrapped.execute(*message.filled(values))
            self._has_ended = is_last
            results: Any = wrapped.cursor
            for _ in range(begins + len(statements) - 1):
                results.nextset()
            return _answer(results)

    def commit(self) -> None:
        self._end("COMMIT")

    def cancel(self) -> None:
        self._end("ROLLBACK")

    def _end(self, command: str) -> None:
        if self._has_begun and not self._has_ended:
            with connection.cursor() as cursor:
                cursor.execute(command)
        self._has_ended = True


def _answer(cursor: Any) -> Answer:
    row = cursor.fetchone() if cursor.description else None
    return Answer(cursor.rowcount, row or ())


def joined(*statements: Statement) -> tuple[Statement, ...]:
    """One statement of them all on PostgreSQL, each part seeing what was there before; the last
    one answers. Elsewhere they stay as they are.
    """
    is_joined = connection.vendor == "postgresql" and len(statements) > 1
    return (_joined(statements),) if is_joined else statements


@cache
def _joined(statements: tuple[Statement, ...]) -> Statement:
    def compiled() -> Compiled:
        *others, (last, _) = parts = [statement.compiled() for statement in statements]
        named = ", ".join(f"other_{number} AS ({sql})" for number, (sql, _) in enumerate(others))
        return f"WITH {named} {last}", [one for _, given in parts for one in given]

    return Statement(compiled)


@cache
def _message(statements: tuple[Statement, ...], *, begins: bool, ends: bool) -> Statement:
    def compiled() -> Compiled:
        parts = [statement.compiled() for statement in statements]
        texts = ["BEGIN"] * begins + [sql for sql, _ in parts] + ["COMMIT"] * ends
        return written_out("; ".join(texts), [one for _, given in parts for one in given])

    return Statement(compiled)


def _takes_many() -> bool:
    """Whether the driver sends several statements with their parameters as one message."""
    options = connection.settings_dict["OPTIONS"]
    driver = getattr(connection, "Database", None)
    return getattr(driver, "__name__", "") == "psycopg" and not options.get("server_side_binding")
