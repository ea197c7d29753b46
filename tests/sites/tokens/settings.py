"""A front end with tokens: the API answers a sign-in with a token, which ends with the consent."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "rest_framework",
    "rest_framework.authtoken",
    "tests.sites.tokens.apps.TokensConfig",
]
ROOT_URLCONF = "tests.sites.tokens.urls"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
