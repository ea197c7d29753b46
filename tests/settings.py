"""Settings of the test suite: SQLite in a file of its own, or whatever ``DATABASE_URL`` names."""

import os
import tempfile
from pathlib import Path

import dj_database_url
import pymysql

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import INSTALLED_APPS

# The only driver for MariaDB that installs without a compiler.
pymysql.install_as_MySQLdb()

ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [*INSTALLED_APPS, "tests.leaky"]
ROOT_URLCONF = "tests.urls"
LOGGING = {}
LOGIN_REDIRECT_URL = "/"
IDENTITY_LOCAL_SIGN_IN_URL = "/accounts/login/"

# A file, because threads that share an in-memory SQLite do not wait for each other's locks.
SQLITE_FILE = (
    Path(tempfile.gettempdir()) / f"django-identity-tests-{os.getpid()}.sqlite3"
)
DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL", f"sqlite:///{SQLITE_FILE}"),
    ),
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(SQLITE_FILE)}
    # No test cuts the power: waiting for the disk at each commit would be most of the time.
    no_waiting = "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY"
    # A transaction that reads first and then writes must wait, and not fail at once.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": no_waiting,
    }
else:
    # Of its own, so that two runs on one server do not meet.
    DATABASES["default"]["TEST"] = {"NAME": f"test_identity_{os.getpid()}"}

DJANGO_IDENTITY = {
    "ENVIRONMENT": "test",
    "BASE_URL": "http://127.0.0.1:9/api/v1",
    "AUTH_URL": "http://127.0.0.1:9",
    "CLIENT_ID": "test-client",
    "CLIENT_SECRET": "a-client-secret-for-tests-alone",
    "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"],
}
