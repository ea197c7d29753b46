"""A user model with a UUID key, an e-mail address as its name, and one more required field."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import APPLICATION, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.custom_user"]
AUTH_USER_MODEL = "custom_user.User"
SITE_USER_FIELDS = {"country": "NG"}
DJANGO_IDENTITY = {**APPLICATION, "POLICY": "tests.sites.custom_user.policy.Policy"}
