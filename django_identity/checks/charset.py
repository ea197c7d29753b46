"""Which characters the database lacks, such as MariaDB in utf8mb3 and PostgreSQL in LATIN1."""

from django.apps import apps
from django.contrib.auth import get_user_model

from django_identity import database

# As PostgreSQL and MySQL name them. SQLite has every character.
COMPLETE = frozenset({"utf8", "utf8mb4", "utf16", "utf32"})
# MySQL's old "utf8", which Python does not have.
BASIC_PLANE = "utf8mb3"


def lacking() -> str:
    """The database's character set in small letters, or empty if it has every character."""
    vendor = database.connection().vendor
    found: list[str] = []
    if vendor == "postgresql":
        found = _column("SHOW server_encoding")
    elif vendor == "mysql":
        found = _of_mysql()
    for name in map(str.lower, found):
        if name not in COMPLETE:
            return name
    return ""


def _of_mysql() -> list[str]:
    """The character sets of the connection and the columns.

    Before the first migration the character set of new tables counts.
    """
    models = [*apps.get_app_config("django_identity").get_models(), get_user_model()]
    tables = [model._meta.db_table for model in models]
    places = ", ".join(["%s"] * len(tables))
    of_columns = _column(
        # What is put in is only "%s" for each table.
        "SELECT DISTINCT character_set_name FROM information_schema.columns"  # noqa: S608
        " WHERE table_schema = DATABASE() AND character_set_name IS NOT NULL"
        f" AND table_name IN ({places}) ORDER BY character_set_name",
        tables,
    )
    of_new_tables = _column("SELECT @@character_set_database")
    names = [
        *_column("SELECT @@character_set_connection"),
        *(of_columns or of_new_tables),
    ]
    # Before MySQL 8 and MariaDB 10.6 "utf8" was this one's name.
    return [BASIC_PLANE if name == "utf8" else name for name in names]


def _column(sql: str, parameters: list[str] | None = None) -> list[str]:
    with database.connection().cursor() as cursor:
        cursor.execute(sql, parameters)
        return [str(row[0]) for row in cursor.fetchall()]
