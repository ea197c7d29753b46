"""The settings of a site with drf-spectacular."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "drf_spectacular"]
REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication"
    ],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "django-identity",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
}
