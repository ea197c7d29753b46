"""Marks of tests that only some databases can run, and what all of them are held to."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="PostgreSQL's own",
)


on_servers = pytest.mark.skipif(
    connection.vendor == "sqlite",
    reason="SQLite has no connection",
)
OWN_NUMBER = {
    "postgresql": "SELECT pg_backend_pid()",
    "mysql": "SELECT CONNECTION_ID()",
}
CUT = {"postgresql": "SELECT pg_terminate_backend(%s)", "mysql": "KILL %s"}
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx"
    " JOIN information_schema.processlist ON id = trx_mysql_thread_id"
    " WHERE db = DATABASE() AND trx_state = 'LOCK WAIT'",
}

READ_ONLY = {
    "sqlite": {"init_command": "PRAGMA query_only = ON"},
    "postgresql": {"options": "-c default_transaction_read_only=on"},
    "mysql": {"init_command": "SET SESSION TRANSACTION READ ONLY"},
}


def cutter() -> Callable[[], None]:
    """A function for another thread: it ends the connection of this one, as a pooler does."""
    with connection.cursor() as cursor:
        cursor.execute(OWN_NUMBER[connection.vendor])
        [number] = cursor.fetchone()

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(CUT[connection.vendor], [number])

    return cut


def until_it_waits(call: Future[Any]) -> None:
    """Until ``call``, in another thread, waits for a lock. It is not to end without."""
    waiting = 0
    while not waiting:
        assert not call.done()
        # InnoDB tells the same again to who asks within 0.1 seconds.
        time.sleep(0.2)
        with connection.cursor() as cursor:
            cursor.execute(WAITING[connection.vendor])
            [waiting] = cursor.fetchone()


@contextmanager
def read_only() -> Iterator[None]:
    """As a replica, or a primary that is being replaced: new connections cannot write either."""
    given = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = {**given, **READ_ONLY[connection.vendor]}
    connection.close()
    try:
        yield
    finally:
        connection.settings_dict["OPTIONS"] = given
        connection.close()


@contextmanager
def pointed_at(row: Model) -> Iterator[None]:
    """A row that Django knows nothing of points at this one, as with ``DO_NOTHING``."""
    key = row._meta.pk
    kind = key.rel_db_type(connection)
    with site_note(kind, row._meta.db_table, key.column, about=row.pk):
        yield


@contextmanager
def site_note(kind: str, table: str, column: str, *, about: object) -> Iterator[None]:
    """A table of the site with a foreign key, and one row."""
    moment = ""
    if connection.features.can_defer_constraint_checks:
        moment = " DEFERRABLE INITIALLY DEFERRED"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE site_note (id int PRIMARY KEY, about {kind} NOT NULL,"
            f" FOREIGN KEY (about) REFERENCES {table} ({column}){moment})",
        )
        cursor.execute("INSERT INTO site_note VALUES (1, %s)", [about])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE site_note")


@contextmanager
def dangling() -> Iterator[None]:
    """A row points at one that is gone. SQLite's own shell leaves such rows; others let none be."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys = OFF")
        with site_note("int", "auth_user", "id", about=999999):
            cursor.execute("PRAGMA foreign_keys = ON")
            yield
