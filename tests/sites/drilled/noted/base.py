"""A file for each test database, as a server keeps them."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3 import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    @property
    def note(self) -> Path:
        return Path(settings.FOLDER, f"{self.connection.alias}.made")

    def _create_test_db(self, *arguments: Any, **named: Any) -> str:
        self.note.touch()
        return str(super()._create_test_db(*arguments, **named))

    def _destroy_test_db(self, *arguments: Any) -> None:
        super()._destroy_test_db(*arguments)
        self.note.unlink()


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
