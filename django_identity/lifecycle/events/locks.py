"""The order of locks, and the time-out for lock waits.

Every transaction about a person takes its locks in this order, so that there are no deadlocks:

1. the pending erasure receipts that it works on
2. the subject: a sign-in or an erasure excludes new events of the subject (``lock_subject``)
3. the event that it stores, or the events that it reads
4. the identity, then its grant and its claims
5. the site's user, then a new erasure receipt

MariaDB has no lock for a subject; a locking read waits for rows that are just being inserted. A
sign-in and an event may then deadlock, and one of them is retried. SQLite has one lock for the
whole database.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError

from django_identity import database

LOCK_WAIT_SECONDS = 3
# A shorter time-out of the site stays in force.
POSTGRESQL_LIMIT = """
    SELECT CASE WHEN current_setting('lock_timeout')::interval BETWEEN '1ms' AND '3s' THEN ''
    ELSE set_config('lock_timeout', '3s', true) END, pg_advisory_xact_lock_shared(%s)
"""
MARIADB_LIMIT = """
    SET @django_identity_lock_wait = @@innodb_lock_wait_timeout,
    innodb_lock_wait_timeout = LEAST(3, @@innodb_lock_wait_timeout)
"""
MARIADB_RESTORE = "SET innodb_lock_wait_timeout = @django_identity_lock_wait"


def lock_subject(subject_digest: str) -> None:
    """Exclude events of the subject until the end of this transaction (only on PostgreSQL)."""
    if database.connection().vendor == "postgresql":
        _run("SELECT pg_advisory_xact_lock(%s)", _number_of(subject_digest))


@contextmanager
def transaction_of_event(subject_digest: str) -> Iterator[None]:
    """``database.atomic()`` with a time-out of 3 seconds for lock waits.

    It waits for a transaction that has locked the subject, and excludes such transactions until its
    end.
    """
    restore = _limit_waiting()
    try:
        with database.atomic():
            if database.connection().vendor == "postgresql":
                _run(POSTGRESQL_LIMIT, _number_of(subject_digest))
            yield
    finally:
        # A lost connection needs no restoring.
        with suppress(DatabaseError):
            _run(restore)


def _number_of(subject_digest: str) -> int:
    """The number of the subject's advisory lock on PostgreSQL."""
    return int.from_bytes(bytes.fromhex(subject_digest[:16]), signed=True)


def _limit_waiting() -> str:
    """Set the time-out of the connection, except on PostgreSQL. Returns a statement to undo it."""
    if database.connection().vendor == "mysql":
        _run(MARIADB_LIMIT)
        return MARIADB_RESTORE
    if database.connection().vendor == "sqlite":
        with database.connection().cursor() as cursor:
            (milliseconds,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        _run(f"PRAGMA busy_timeout = {min(milliseconds, LOCK_WAIT_SECONDS * 1000)}")
        return f"PRAGMA busy_timeout = {milliseconds}"
    return ""


def _run(statement: str, *parameters: int) -> None:
    if statement:
        with database.connection().cursor() as cursor:
            cursor.execute(statement, parameters)
