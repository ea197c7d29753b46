"""Sends the user model, what refers to it, and the package to the database ``people``."""

from __future__ import annotations

from typing import Any

PEOPLE = {"auth", "contenttypes", "admin", "django_identity"}


class PeopleRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "people" if model._meta.app_label in PEOPLE else "default"

    db_for_write = db_for_read

    def allow_relation(self, one: Any, other: Any, **_hints: Any) -> bool:
        return bool(self.db_for_read(one) == self.db_for_read(other))

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool:
        return (db == "people") == (app_label in PEOPLE)
