"""Settings of the test suite: SQLite in a file of its own, or whatever ``DATABASE_URL`` names."""

import os
import tempfile
from pathlib import Path

import dj_database_url
import django
import pymysql

# The only driver for MariaDB that installs without a compiler.
pymysql.install_as_MySQLdb()

SECRET_KEY = "a key for tests alone, of no use anywhere else"
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
USE_TZ = True
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_identity",
    "tests.leaky",
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
ROOT_URLCONF = "tests.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
# For sites that run as processes of their own; pytest-django keeps the mails of a test.
MAIL = "django.core.mail.backends.dummy.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL}}
else:
    EMAIL_BACKEND = MAIL
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "django_identity.backends.IdentityBackend",
]
LOGIN_URL = "identity:login"
LOGIN_REDIRECT_URL = "/"
IDENTITY_LOCAL_SIGN_IN_URL = "/accounts/login/"

# A file, because threads that share an in-memory SQLite do not wait for each other's locks.
SQLITE_FILE = Path(tempfile.gettempdir()) / f"django-identity-tests-{os.getpid()}.sqlite3"
DATABASES = {
    "default": dj_database_url.parse(os.environ.get("DATABASE_URL", f"sqlite:///{SQLITE_FILE}"))
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(SQLITE_FILE)}
    # No test cuts the power: waiting for the disk at each commit would be most of the time.
    no_waiting = "PRAGMA synchronous=OFF"
    # A transaction that reads first and then writes must wait, and not fail at once.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": no_waiting,
    }  # fmt: skip
else:
    # Of its own, so that two runs on one server do not meet.
    DATABASES["default"]["TEST"] = {"NAME": f"test_identity_{os.getpid()}"}

DJANGO_IDENTITY = {
    "default": {
        "ENVIRONMENT": "test",
        "BASE_URL": "http://127.0.0.1:9/api/v1",
        "AUTH_URL": "http://127.0.0.1:9",
        "CLIENT_ID": "test-client",
        "CLIENT_SECRET": "a-client-secret-for-tests-alone",
        "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"],
    }
}
