"""A site by ASGI with simplejwt, django-ninja and a stream, as ``docs/beside.md`` says."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "rest_framework",
    "rest_framework_simplejwt.token_blacklist",
]
ROOT_URLCONF = "tests.sites.beside_others.urls"
# Its migrations would take longer than most steps.
MIGRATION_MODULES = {"token_blacklist": None}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework_simplejwt.authentication.JWTAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "EXCEPTION_HANDLER": "django_identity.api.problems.exception_handler",
}
