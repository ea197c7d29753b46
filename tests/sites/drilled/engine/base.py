"""SQLite as the databases of other sites are, by what ``SITE_BREAKS`` names."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.db import OperationalError
from django.db.backends.sqlite3 import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    def create_test_db(self, *arguments: Any, **named: Any) -> str:
        if "forbidden" in settings.SITE_BREAKS:
            # A role that may create none, as Django tells it.
            self.log("Got an error creating the test database: permission denied")
            sys.exit(2)
        if "database" in settings.SITE_BREAKS:
            # The test database is the database, as with a managed one.
            return str(self.connection.settings_dict["NAME"])
        return str(super().create_test_db(*arguments, **named))

    def destroy_test_db(self, *arguments: Any, **named: Any) -> None:
        if "lingering" in settings.SITE_BREAKS:
            name = self.connection.settings_dict["NAME"]
            raise OperationalError(
                f'database "{name}" is being accessed by other users',
            )
        super().destroy_test_db(*arguments, **named)

    def _create_test_db(self, *arguments: Any, **named: Any) -> str:
        self.note(Path.touch)
        return str(super()._create_test_db(*arguments, **named))

    def _destroy_test_db(self, *arguments: Any) -> None:
        super()._destroy_test_db(*arguments)
        self.note(Path.unlink)

    def note(self, change: Callable[[Path], None]) -> None:
        """A file is there as long as the test database is, as on a server."""
        if "noted" in settings.SITE_BREAKS:
            change(Path(settings.FOLDER, f"{self.connection.alias}.made"))


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
    held: ClassVar[dict[str, Any]] = {}

    def get_connection_params(self) -> Any:
        """Connections stay those of the database to which the first one led."""
        parameters = super().get_connection_params()
        if settings.SITE_BREAKS & {"kept", "pooled"}:
            return self.held.setdefault(self.alias, parameters)
        return parameters

    def close_pool(self) -> None:
        """As the pools of PostgreSQL and Oracle end."""
        if "pooled" in settings.SITE_BREAKS:
            self.held.pop(self.alias, None)
