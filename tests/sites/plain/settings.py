"""A site as the documentation makes it. The other sites change this one."""

import os
from typing import Any

import django

SECRET_KEY = "a key for tests alone, of no use anywhere else"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "tests.sites.plain.urls"
STATIC_URL = "static/"
USE_TZ = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
MAIL = "django.core.mail.backends.dummy.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL}}
    SILENCED_SYSTEM_CHECKS = ["mail.E001"]  # that no mail leaves
else:
    EMAIL_BACKEND = MAIL

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_identity",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
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
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "django_identity.backends.IdentityBackend",
]
LOGIN_URL = "identity:login"
LOGIN_REDIRECT_URL = "home"
IDENTITY_LOCAL_SIGN_IN_URL = "local-sign-in"

FOLDER = os.environ.get("SITE_FOLDER", ".")


def database(name: str) -> dict[str, object]:
    """A database of this site alone: a file in its folder."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": f"{FOLDER}/{name}.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA synchronous=OFF",
        },
    }


DATABASES: dict[str, Any] = {"default": database("site")}

#: What the sandbox registered: it is known when the site starts.
APPLICATION = {
    "ENVIRONMENT": "test",
    "BASE_URL": os.environ.get("SITE_BASE_URL", "http://127.0.0.1:9/api/v1"),
    "AUTH_URL": os.environ.get("SITE_AUTH_URL", "http://127.0.0.1:9"),
    "CLIENT_ID": os.environ.get("SITE_CLIENT_ID", "a-client"),
    "CLIENT_SECRET": os.environ.get(
        "SITE_CLIENT_SECRET",
        "a-client-secret-for-tests-alone",
    ),
    "WEBHOOK_SECRETS": [
        os.environ.get("SITE_WEBHOOK_SECRET", "a-webhook-secret-for-tests"),
    ],
}
DJANGO_IDENTITY = APPLICATION

#: Further fields of the people that ``serve`` creates.
SITE_USER_FIELDS: dict[str, object] = {}
#: The dotted path of a function that ``serve`` calls when the people are there.
SITE_READY = ""
# An error of a page is printed, so that a failed step shows it.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {
        "django.request": {"handlers": ["console"], "level": "ERROR"},
        "django.server": {"level": "CRITICAL"},
    },
}
