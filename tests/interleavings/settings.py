"""The site of the explorer: an in-memory SQLite, two applications, and no log."""

from tests.sites.plain.settings import *  # noqa: F403  as the other sites do

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.urls"
LOGGING_CONFIG = None

FIRST = {
    "ENVIRONMENT": "test",
    "BASE_URL": "http://127.0.0.1:9/api/v1",
    "AUTH_URL": "http://127.0.0.1:9",
    "CLIENT_ID": "first",
    "CLIENT_SECRET": "a-client-secret-for-tests-alone",
    "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"],
    "POLICY": "tests.interleavings.world.SilentPolicy",
}
DJANGO_IDENTITY = {"default": FIRST, "second": {**FIRST, "CLIENT_ID": "second"}}
