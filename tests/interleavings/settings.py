"""The site of the explorer: an in-memory SQLite, and two applications."""

from tests.sites.plain.settings import *  # noqa: F403  as the other sites do
from tests.sites.plain.settings import APPLICATION

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ALLOWED_HOSTS = ["*"]
MIDDLEWARE = []

FIRST = {**APPLICATION, "POLICY": "tests.interleavings.world.SilentPolicy"}
DJANGO_IDENTITY = {"default": FIRST, "second": {**FIRST, "CLIENT_ID": "second"}}
