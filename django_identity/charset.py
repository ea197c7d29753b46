"""Text that the site's database cannot hold: MariaDB in utf8mb3, PostgreSQL in LATIN1.

A check asks for another database. Until the site has one, a name with such a character is left out,
and other texts of the service are stored with "?" in its place. So no event and no sign-in fails
because of a character.
"""

import codecs
import json
import re
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model

from django_identity import database

# As PostgreSQL and MySQL name them. SQLite has every character.
COMPLETE = frozenset({"utf8", "utf8mb4", "utf16", "utf32"})
# MySQL's old "utf8", which Python does not have.
BASIC_PLANE = "utf8mb3"
BEYOND_BASIC_PLANE = re.compile("[\U00010000-\U0010ffff]")


def holds(text: str) -> bool:
    """Whether the database can hold ``text`` as it is."""
    return holdable(text) == text


def holdable(text: str) -> str:
    """``text`` as the database can hold it."""
    # So that most sites never ask the database.
    if text.isascii():
        return text
    return converted(text, lacking(database.alias()))


def holdable_json(value: Any) -> Any:
    """``value`` with its texts as the database can hold them."""
    text = json.dumps(value, ensure_ascii=False)
    stored = holdable(text)
    if stored == text:
        return value
    return json.loads(stored)


def converted(text: str, charset: str) -> str:
    """``text`` with "?" for each character that ``charset`` lacks; an empty name lacks none."""
    if not charset:
        return text
    if charset == BASIC_PLANE:
        return BEYOND_BASIC_PLANE.sub("?", text)
    try:
        # Windows' code pages have another name in PostgreSQL.
        codec = codecs.lookup(charset.replace("win", "cp"))
    except LookupError:
        codec = codecs.lookup("ascii")
    stored, _length = codec.encode(text, "replace")
    shown, _length = codec.decode(stored)
    return shown


@cache
def lacking(alias: str) -> str:
    """The database's character set in small letters, or empty if it has every character.

    The database is asked once in each process.
    """
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

    Before the first migration there are no columns; then that of new tables counts.
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
