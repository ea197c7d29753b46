"""Settings of the example project: a lending circle that needs verified adults."""

from __future__ import annotations

import json
import os
from pathlib import Path

import dj_database_url
import django
from django.conf import global_settings

from django_identity.schedule import beat_schedule

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = os.environ.get(
    "SECRET_KEY",
    "the example project's key, of no use anywhere else",
)
DEBUG = os.environ.get("DEBUG", "") == "1"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "127.0.0.1,localhost").split(",")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "example_project.circle",  # before django_identity: its django_identity/base.html comes first
    "django_identity",  # models, templates, static files, commands
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "example_project.circle.middleware.content_security_policy",
]
ROOT_URLCONF = "example_project.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
STATIC_URL = "static/"
LANGUAGES = [
    (code, name)
    for code, name in global_settings.LANGUAGES
    if code in ("en", "fr", "pt", "pt-br", "es", "ar")
]
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SESSION_COOKIE_SAMESITE = os.environ.get("SESSION_COOKIE_SAMESITE", "Lax")

# The time-outs of a server are set on the role: docs/going-live.md.
DATABASES = {
    "default": dj_database_url.config(default=f"sqlite:///{BASE_DIR / 'demo.sqlite3'}"),
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {"timeout": 20, "transaction_mode": "IMMEDIATE"}
if "CACHE_URL" in os.environ:  # one that all processes share
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": os.environ["CACHE_URL"],
            "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},
        },
    }
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL", "filesystem://")
if (
    CELERY_BROKER_URL == "filesystem://"
):  # no server: messages are files, for one machine
    BROKER_FOLDER = Path(os.environ.get("BROKER_FOLDER", BASE_DIR / ".demo" / "broker"))
    BROKER_FOLDER.mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, str | int] = {
        f"{name}_folder{way}": str(BROKER_FOLDER)
        for name, way in (("data", "_in"), ("data", "_out"), ("control", ""))
    }
elif CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 5}
CELERY_BEAT_SCHEDULE = beat_schedule(every=float(os.environ.get("UPKEEP_EVERY", "60")))

# The mail about a new link is printed.
MAIL = "django.core.mail.backends.console.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL}}
else:
    EMAIL_BACKEND = MAIL
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "django_identity.backends.IdentityBackend",  # sessions that end with the consent
]
LOGIN_URL = "identity:login"  # a page with the button, which leads on to `next`
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "home"
IDENTITY_LOCAL_SIGN_IN_URL = (
    "local-sign-in"  # for people whose address has an account already
)

# Each key can be given as an IDENTITY_<KEY> variable; lists are comma separated, keys are JSON.
SANDBOX = "http://127.0.0.1:9400"
IDENTITY_DEFAULTS = {
    "ENVIRONMENT": "test",
    "BASE_URL": f"{SANDBOX}/api/v1",
    "AUTH_URL": SANDBOX,
    "CLIENT_ID": "set by manage.py demo",
    "CLIENT_SECRET": "set by manage.py demo",
    "POLICY": "example_project.circle.policy.CirclePolicy",
    "SERVICE_ACCOUNT_URL": f"{SANDBOX}/account/",
}
TEXTS = (*IDENTITY_DEFAULTS, "API_ORIGIN", "REDIRECT_URI", "SERVICE_NAME")
LISTS = (
    "WEBHOOK_SECRETS",
    "SCOPES",
    "LATER_SCOPES",
    "CONNECT_SCOPES",
    "ENCRYPTION_KEYS",
)
NUMBERS = {"TIMEOUT": float}
given = {
    key.removeprefix("IDENTITY_"): value
    for key, value in os.environ.items()
    if value
    if key.startswith("IDENTITY_")
}
DJANGO_IDENTITY = {
    **IDENTITY_DEFAULTS,
    **{key: given[key] for key in TEXTS if key in given},
    **{key: given[key].split(",") for key in LISTS if key in given},
    "DOCUMENT_KEYS": json.loads(given.get("DOCUMENT_KEYS", "[]")),
    "DOCUMENT_PATHS": {
        "documents:metadata": "/users/{subject}/documents/metadata",
        "documents:read": "/users/{subject}/documents",
    },
    **{key: kind(given[key]) for key, kind in NUMBERS.items() if key in given},
}
