"""The test database is the database."""

from typing import Any

from django.db.backends.sqlite3 import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    def create_test_db(self, *_: Any, **__: Any) -> str:
        return str(self.connection.settings_dict["NAME"])


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
