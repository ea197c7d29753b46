"""The suite's settings with a cache that processes share: a table of the database."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "shared"}
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A transaction that reads first would fail instead of waiting for the lock.
    DATABASES["default"]["OPTIONS"] |= {"transaction_mode": "IMMEDIATE"}
