"""Somebody is connected to the test database for ever, so it cannot be deleted."""

from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    def destroy_test_db(self, *_: Any, **__: Any) -> None:
        name = self.connection.settings_dict["NAME"]
        raise OperationalError(f'database "{name}" is being accessed by other users')


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
