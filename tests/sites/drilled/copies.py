"""The copies of a name that a broken shop leaves behind, by the promise that each breaks."""

import json
import os
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from tests.sites.drilled.models import Crew, EventLog, Guest, History, TaskResult

#: Tables that no model of the shop makes.
TABLES = (
    "CREATE TABLE partner_guest (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE shop_raw (name TEXT)",
    "CREATE VIRTUAL TABLE shop_search USING fts5(words)",
)


def make_tables(**_: Any) -> None:
    with closing(connection.cursor()) as cursor:
        for statement in TABLES:
            cursor.execute(statement.replace("TABLE ", "TABLE IF NOT EXISTS "))


def insert(table: str, text: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (%s)", [text])


def in_session(user: Any) -> None:
    """Of somebody else, such as one who has looked at the profile."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session["looked_at"] = user.first_name
    session.save()


def in_log_of_admin(user: Any) -> None:
    LogEntry.objects.create(user=user, object_repr=user.first_name, action_flag=CHANGE)


def outside(user: Any) -> None:
    Path(os.environ["SITE_FOLDER"], "guests.txt").write_text(user.first_name)


COPIES = {
    "task": lambda user: TaskResult.objects.create(
        result=json.dumps({"greeted": user.first_name})
    ),
    "vector": lambda user: insert("shop_search", user.first_name),
    "array": lambda user: Crew.objects.create(names=["Bo", user.first_name]),
    "unmanaged": lambda user: Guest.objects.create(name=user.first_name),
    "log": lambda user: EventLog.objects.create(payload={"line": user.first_name}),
    "log_of_admin": in_log_of_admin,
    "in_session": in_session,
    "history": lambda user: History.objects.create(name=user.first_name),
    "raw": lambda user: insert("shop_raw", user.first_name),
    "cache": lambda user: cache.set("newest", user.first_name),
    "file": lambda user: default_storage.save(
        f"cards/{user.pk}.txt", ContentFile(user.first_name)
    ),
    "outside": outside,
}


def copy(*, user: Any, **_: Any) -> None:
    for name in settings.SITE_BREAKS & COPIES.keys():
        COPIES[name](user)
