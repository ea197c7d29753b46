"""People, what refers to them and the package are in one database, which is read from a replica."""

from typing import Any

from django.apps import apps

PEOPLE = {"auth", "contenttypes", "admin", "django_identity"}


class PeopleRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "replica" if model._meta.app_label in PEOPLE else "default"

    def db_for_write(self, model: Any, **_hints: Any) -> str:
        return "people" if model._meta.app_label in PEOPLE else "default"

    def allow_relation(self, one: Any, other: Any, **_hints: Any) -> bool:
        return bool(self.db_for_write(one) == self.db_for_write(other))

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool:
        return (db == "default") != (app_label in PEOPLE)


def copy() -> None:
    """Bring the replica to the state of the primary."""
    for model in (each for each in apps.get_models() if not each._meta.proxy):
        if model._meta.app_label in PEOPLE:
            rows = model._base_manager.using("people").all()
            model._base_manager.using("replica").all().delete()
            model._base_manager.using("replica").bulk_create(list(rows))
