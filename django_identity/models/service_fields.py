"""Columns for what the service says, which may have characters that the database lacks.

Elsewhere they are columns of Django's own: a migration names those.
"""

from typing import TYPE_CHECKING, Any

from django.db import models

from django_identity import charset

if TYPE_CHECKING:
    CharField = models.CharField[str, str]
    JSONField = models.JSONField[Any, Any]
else:
    CharField = models.CharField
    JSONField = models.JSONField


class ServiceText(CharField):
    """A text of the service: each character that the database lacks is stored as "?"."""

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def get_db_prep_value(
        self, value: Any, connection: Any, prepared: bool = False
    ) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        return charset.holdable(value) if isinstance(value, str) else value


class ServiceJSON(JSONField):
    """A JSON value of the service, with its texts as ``ServiceText`` stores them."""

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def get_db_prep_value(
        self, value: Any, connection: Any, prepared: bool = False
    ) -> Any:
        # An expression brings SQL of its own.
        if not hasattr(value, "as_sql"):
            value = charset.holdable_json(value)
        return super().get_db_prep_value(value, connection, prepared)
