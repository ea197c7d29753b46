"""A single-page front end with sessions: it calls the JSON API, and scripts see no cookie."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403

ROOT_URLCONF = "tests.sites.frontend.urls"
CSRF_COOKIE_HTTPONLY = True
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
