"""Whether this process can serve requests: one query, for load balancers."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError

from django_identity import conf, database
from django_identity.models import LinkedIdentity


def is_ready() -> bool:
    """Whether the settings are usable, and the database has the tables and takes writes.

    If the connection was cut, it tries once on a new connection.
    """
    if any(problem.fatal for problem in conf.problems()):
        return False
    try:
        write_nothing()
    except (OperationalError, InterfaceError):
        return _is_ready_on_new_connection()
    except DatabaseError:
        return False
    return True


def _is_ready_on_new_connection() -> bool:
    connection = database.connection()
    if connection.in_atomic_block:
        return False
    connection.close()
    try:
        write_nothing()
    except (DatabaseError, InterfaceError):
        return False
    return True


def write_nothing() -> None:
    """An UPDATE of no row. Without the table, or if the database is read-only, it fails."""
    LinkedIdentity.objects.filter(pk=-1).update(last_error="")
