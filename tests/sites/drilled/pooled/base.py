"""The same until the pool is closed, as with the pools of PostgreSQL and Oracle."""

from tests.sites.drilled.kept import base


class DatabaseWrapper(base.DatabaseWrapper):
    def close_pool(self) -> None:
        self.held.pop(self.alias, None)
