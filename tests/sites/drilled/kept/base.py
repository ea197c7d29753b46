"""Connections stay those of the database to which the first one led."""

from typing import Any, ClassVar

from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):
    held: ClassVar[dict[str, Any]] = {}

    def get_connection_params(self) -> Any:
        return self.held.setdefault(self.alias, super().get_connection_params())
