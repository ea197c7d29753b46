"""A database of its own for a benchmark: the suite's, made anew and dropped at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, connections


@contextmanager
def fresh_database() -> Iterator[None]:
    """Empty tables, on whatever ``DATABASE_URL`` names."""
    name = connection.settings_dict["NAME"]
    made = connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = made
        connection.creation.destroy_test_db(name, verbosity=0)
