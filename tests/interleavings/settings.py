"""The site of the explorer: an in-memory SQLite."""

from tests.sites.plain.settings import *  # noqa: F403  as the other sites do
from tests.sites.plain.settings import APPLICATION

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ALLOWED_HOSTS = ["*"]
MIDDLEWARE = []

DJANGO_IDENTITY = {**APPLICATION, "POLICY": "tests.interleavings.world.SilentPolicy"}
