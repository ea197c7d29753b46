"""Django settings of the sandbox process.

What differs from one start to the next, ``server`` hands over in environment variables before
Django reads this module. Nothing here is fit for production.
"""

import os
import secrets
from urllib.parse import urlsplit

import django

SANDBOX_ORIGIN = os.environ.get("DJANGO_IDENTITY_SANDBOX_ORIGIN", "http://127.0.0.1:9400")
SANDBOX_DATABASE = os.environ.get("DJANGO_IDENTITY_SANDBOX_DATABASE", ":memory:")

SANDBOX_PORTAL_TOKEN = os.environ.get(
    "DJANGO_IDENTITY_SANDBOX_PORTAL_TOKEN"
) or secrets.token_urlsafe(32)

# Whoever controls the sandbox sends it. Empty: this machine may, and others send the portal's.
SANDBOX_CONTROL_TOKEN = os.environ.get("DJANGO_IDENTITY_SANDBOX_CONTROL_TOKEN", "")

# Private hosts that an event may be sent to, whoever registers the address.
SANDBOX_WEBHOOK_HOSTS = os.environ.get("DJANGO_IDENTITY_SANDBOX_WEBHOOK_HOSTS", "").lower().split()

SECRET_KEY = secrets.token_urlsafe(48)
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", urlsplit(SANDBOX_ORIGIN).hostname or ""]
CSRF_TRUSTED_ORIGINS = [SANDBOX_ORIGIN]  # a proxy before the sandbox may speak https for it
ROOT_URLCONF = "django_identity.sandbox.urls"
APPEND_SLASH = False
CSRF_FAILURE_VIEW = "django_identity.sandbox.pages.errors.unproven_form"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", "English"),
    ("ar", "العربية"),
    ("es", "español"),
    ("fr", "français"),
    ("pt", "português"),
    ("pt-br", "português do Brasil"),
]
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
    "django_identity.sandbox.control.access.ControlMiddleware",
    "django_identity.sandbox.instruments.request_log.RequestLogMiddleware",
    "django_identity.sandbox.instruments.fault_injection.FaultMiddleware",
    "django_identity.sandbox.pages.headers.PageHeadersMiddleware",
    "django_identity.sandbox.pages.errors.WrongMethodMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django_identity.sandbox.pages.language.PageLanguageMiddleware",
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
            ]
        },
    }
]

# BEGIN IMMEDIATE takes the write lock at once, so two requests wait for each other instead of
# failing when the second one finds its snapshot stale.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": SANDBOX_DATABASE,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "sandbox.User"
PASSWORD_HASHERS = ["django_identity.sandbox.users.accounts.QuickPasswordHasher"]
MAIL = "django_identity.sandbox.consents.mail.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL}}
else:
    EMAIL_BACKEND = MAIL
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "account"

# The site under test usually runs on the same host with another port, and cookies ignore ports.
SESSION_COOKIE_NAME = "sandbox_session"
CSRF_COOKIE_NAME = "sandbox_csrftoken"
LANGUAGE_COOKIE_NAME = "sandbox_language"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
X_FRAME_OPTIONS = "DENY"

OAUTH2_PROVIDER_APPLICATION_MODEL = "sandbox.Client"
OAUTH2_PROVIDER_GRANT_MODEL = "sandbox.Grant"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "sandbox.AccessToken"  # noqa: S105 -- a model
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "sandbox.RefreshToken"  # noqa: S105 -- a model
OAUTH2_PROVIDER = {
    "OAUTH2_SERVER_CLASS": "django_identity.sandbox.oauth.rules.AuthorizationServer",
    "OAUTH2_VALIDATOR_CLASS": "django_identity.sandbox.oauth.rules.Validator",
    "ACCESS_TOKEN_GENERATOR": "django_identity.sandbox.oauth.rules.new_access_token",
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "CLIENT_SECRET_GENERATOR_LENGTH": 64,
    "PKCE_REQUIRED": True,
    "SCOPES": {
        "profile:read": "Your name, e-mail address, country and photo",
        "kyc:read": "Whether and when your identity was verified, and by whom",
        "claims:read": "Your verified claims, such as being 18 or older",
        "documents:metadata": "The types of your documents, without their content",
        "documents:read": "Your documents with their content, encrypted to the application",
    },
    "DEFAULT_SCOPES": ["profile:read"],
    "SCOPES_BACKEND_CLASS": "django_identity.sandbox.oauth.tiers.TierScopes",
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        # A refused request is the sandbox doing its job, not something to warn about.
        "django.request": {"level": "ERROR"},
        "django.security": {"level": "ERROR"},
        "oauth2_provider": {"level": "ERROR"},
        "django_identity.sandbox.requests": {"level": "INFO"},
    },
}
