"""Connections stay those of the database to which the first one led."""

from typing import Any, ClassVar

from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):
    held: ClassVar[dict[str, Any]] = {}

    def get_connection_params(self) -> dict[str, Any]:
        led: dict[str, Any] = super().get_connection_params()
        return self.held.setdefault(self.alias, led)
