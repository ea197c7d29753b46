"""A database whose role may create none, as Django tells it."""

import sys
from typing import Any

from django.db.backends.sqlite3 import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    def create_test_db(self, *_: Any, **__: Any) -> str:
        self.log("Got an error creating the test database: permission denied")
        sys.exit(2)


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
