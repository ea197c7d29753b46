"""Marks of tests that only some databases can run, and what all of them are held to."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own")


READ_ONLY = {
    "sqlite": {"init_command": "PRAGMA query_only = ON"},
    "postgresql": {"options": "-c default_transaction_read_only=on"},
    "mysql": {"init_command": "SET SESSION TRANSACTION READ ONLY"},
}


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
