"""Django settings of the sandbox process.

What differs from one start to the next, ``server`` hands over in environment variables before
Django reads this module. Nothing here is fit for production.
"""

import os
import secrets
from urllib.parse import urlsplit

_GIVEN = "DJANGO_IDENTITY_SANDBOX_"
SANDBOX_ORIGIN = os.environ.get(f"{_GIVEN}ORIGIN", "http://127.0.0.1:9400")
# What the developer endpoints take.
SANDBOX_PORTAL_TOKEN = os.environ.get(f"{_GIVEN}PORTAL_TOKEN") or secrets.token_urlsafe(
    32,
)
# Whoever is not on this machine and controls the sandbox sends it.
SANDBOX_CONTROL_TOKEN = os.environ.get(f"{_GIVEN}CONTROL_TOKEN", "")

SECRET_KEY = secrets.token_urlsafe(48)
ALLOWED_HOSTS = [
    "127.0.0.1",
    "localhost",
    "[::1]",
    urlsplit(SANDBOX_ORIGIN).hostname or "",
]
CSRF_TRUSTED_ORIGINS = [
    SANDBOX_ORIGIN,
]  # a proxy before the sandbox may speak https for it
ROOT_URLCONF = "django_identity.sandbox.urls"
APPEND_SLASH = False
USE_I18N = False
TIME_ZONE = "UTC"
STATIC_URL = "/static/"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "oauth2_provider",
    "django_identity.sandbox",
]

MIDDLEWARE = [
    "django_identity.sandbox.middleware.SandboxMiddleware",
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
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# BEGIN IMMEDIATE takes the write lock at once, so two requests wait for each other instead of
# failing when the second one finds its snapshot stale.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get(f"{_GIVEN}DATABASE", ":memory:"),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        },
    },
}

AUTH_USER_MODEL = "sandbox.User"
PASSWORD_HASHERS = ["django_identity.sandbox.people.accounts.QuickPasswordHasher"]
LOGIN_URL = "sign_in"

# The site under test usually runs on the same host with another port, and cookies ignore ports.
SESSION_COOKIE_NAME = "sandbox_session"
CSRF_COOKIE_NAME = "sandbox_csrftoken"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

OAUTH2_PROVIDER_APPLICATION_MODEL = "sandbox.Client"
OAUTH2_PROVIDER_GRANT_MODEL = "sandbox.Grant"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "sandbox.AccessToken"
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "sandbox.RefreshToken"
OAUTH2_PROVIDER = {
    "OAUTH2_SERVER_CLASS": "django_identity.sandbox.oauth.rules.AuthorizationServer",
    "OAUTH2_VALIDATOR_CLASS": "django_identity.sandbox.oauth.rules.Validator",
    "ACCESS_TOKEN_GENERATOR": "django_identity.sandbox.oauth.rules.new_access_token",
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "CLIENT_SECRET_GENERATOR_LENGTH": 64,
    "PKCE_REQUIRED": True,
    # In words: consents.described.
    "SCOPES": dict.fromkeys(
        [
            "profile:read",
            "kyc:read",
            "claims:read",
            "documents:read",
            "documents:metadata",
        ],
        "",
    ),
    "DEFAULT_SCOPES": [],
    "SCOPES_BACKEND_CLASS": "django_identity.sandbox.oauth.rules.TierScopes",
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}

_QUIET = ("django.request", "django.security", "oauth2_provider")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        # A refused request is the sandbox doing its job, not something to warn about.
        **{name: {"level": "ERROR"} for name in _QUIET},
        "django_identity.sandbox.requests": {"level": "INFO"},
    },
}
