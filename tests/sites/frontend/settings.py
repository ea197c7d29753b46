"""A single-page front end on another origin of the site: it calls the JSON API, with sessions."""

from tests.sites.plain.settings import *  # noqa: F403

ROOT_URLCONF = "tests.sites.frontend.urls"
ALLOWED_HOSTS = ["api.shop.example", "127.0.0.1"]
CSRF_TRUSTED_ORIGINS = ["https://app.shop.example"]
CSRF_COOKIE_HTTPONLY = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication"
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "django_identity.api.problems.exception_handler",
}
