"""A database that cannot hold people's names is an error."""

from collections.abc import Iterator

import pytest
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from django_identity.checks import charset
from django_identity.instruments.signs import diagnose

only_mysql = pytest.mark.skipif(
    connection.vendor != "mysql", reason="MySQL's and MariaDB's own"
)


def says_so() -> list[str]:
    found = run_checks(tags=[Tags.database], databases=["default"])
    return [each.msg for each in found if each.id == "django_identity.E072"]


@pytest.mark.django_db
def test_a_complete_database_needs_nothing():
    assert says_so() == []


def convert(name: str) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith(("django_identity_", "auth_user")):
                quoted = connection.ops.quote_name(table)
                cursor.execute(f"ALTER TABLE {quoted} CONVERT TO CHARACTER SET {name}")


@pytest.fixture
def old_tables(transactional_db: None) -> Iterator[None]:
    """As they are in a database of MySQL 5 that was never converted."""
    convert("utf8mb3")
    yield
    convert("utf8mb4")


@only_mysql
def test_a_database_of_utf8mb3_is_an_error(old_tables):
    """The check says what to do, and so does the doctor; ``migrate`` stops."""
    (message,) = says_so()
    assert "utf8mb3" in message
    assert any("utf8mb3" in each.message for each in diagnose())
    with pytest.raises(SystemCheckError, match="utf8mb3"):
        call_command("migrate", verbosity=0, skip_checks=False)


@pytest.mark.django_db
def test_migrate_stops_at_a_database_that_lacks_characters(monkeypatch):
    """Before anything is written."""
    monkeypatch.setattr(charset, "lacking", lambda: "latin1")
    with pytest.raises(SystemCheckError, match=r"E072.*latin1"):
        call_command("migrate", verbosity=0, skip_checks=False)
