"""Production settings of each site, with what its own documentation adds. ``PEER`` names it."""

import os
from dataclasses import dataclass, field
from typing import Any

import dj_database_url

PEER = os.environ.get("PEER", "")
SERVICE = os.environ.get("SERVICE", "")
CLIENT_ID = "client-1"
CLIENT_SECRET = "a-client-secret-for-benchmarks-alone"
WEBHOOK_SECRET = "a-webhook-secret-for-benchmarks-alone"
SUBJECT = "subject-1"


@dataclass(frozen=True)
class Site:
    """``start``: where a sign-in begins; ``by_form``: whether that is a POST form."""

    start: str = ""
    by_form: bool = True
    apps: tuple[str, ...] = ()
    middleware: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


APPLICATION = {
    "ENVIRONMENT": "test",
    "BASE_URL": f"{SERVICE}/api/v1",
    "AUTH_URL": SERVICE,
    "CLIENT_ID": CLIENT_ID,
    "CLIENT_SECRET": CLIENT_SECRET,
    "WEBHOOK_SECRETS": [WEBHOOK_SECRET],
}
PROVIDER = {
    "APP": {"client_id": CLIENT_ID, "secret": CLIENT_SECRET, "key": ""},
    "SCOPE": ["profile:read"],
    "OAUTH_PKCE_ENABLED": True,
}


def ours(**more: Any) -> Site:
    return Site(
        start="/identity/login/",
        apps=("django_identity",),
        backends=("django_identity.backends.IdentityBackend",),
        settings={"DJANGO_IDENTITY": {**APPLICATION, **more}},
    )


def allauth(**more: Any) -> Site:
    """With a provider of the site's own (docs: "Custom Providers")."""
    return Site(
        start="/accounts/identity/login/",
        apps=(
            "allauth",
            "allauth.account",
            "allauth.socialaccount",
            "benchmarks.peers.allauth_provider",
        ),
        middleware=("allauth.account.middleware.AccountMiddleware",),
        backends=("allauth.account.auth_backends.AuthenticationBackend",),
        settings={"SOCIALACCOUNT_PROVIDERS": {"identity": PROVIDER}, **more},
    )


SITES = {
    "": Site(),
    "ours": ours(SCOPES=["profile:read"]),
    "ours_all": ours(),
    "allauth": allauth(),
    "allauth_tokens": allauth(SOCIALACCOUNT_STORE_TOKENS=True),
    "social": Site(
        start="/login/identity/",
        apps=("social_django",),
        middleware=("social_django.middleware.SocialAuthExceptionMiddleware",),
        backends=("benchmarks.peers.social_backend.IdentityOAuth2",),
        settings={
            "SOCIAL_AUTH_IDENTITY_ORIGIN": SERVICE,
            "SOCIAL_AUTH_IDENTITY_KEY": CLIENT_ID,
            "SOCIAL_AUTH_IDENTITY_SECRET": CLIENT_SECRET,
        },
    ),
    # An ID token is checked, and people are found by e-mail address.
    "oidc": Site(
        start="/oidc/authenticate/",
        by_form=False,
        apps=("mozilla_django_oidc",),
        backends=("mozilla_django_oidc.auth.OIDCAuthenticationBackend",),
        settings={
            "OIDC_RP_CLIENT_ID": CLIENT_ID,
            "OIDC_RP_CLIENT_SECRET": CLIENT_SECRET,
            "OIDC_OP_AUTHORIZATION_ENDPOINT": f"{SERVICE}/oauth2/auth",
            "OIDC_OP_TOKEN_ENDPOINT": f"{SERVICE}/oauth2/token",
            "OIDC_OP_USER_ENDPOINT": f"{SERVICE}/userinfo",
            "OIDC_USE_PKCE": True,
        },
    ),
    # The site finds and signs in the user itself, in the few lines of ``urls``.
    "authlib": Site(start="/login/", by_form=False),
    "dj_stripe": Site(
        apps=("djstripe",),
        settings={
            "STRIPE_LIVE_MODE": False,
            "STRIPE_TEST_SECRET_KEY": "sk_test_0123456789abcdefghijklmn",
            "DJSTRIPE_FOREIGN_KEY_TO_FIELD": "id",
            # The same tables, made at once: its migrations take minutes on SQLite.
            "MIGRATION_MODULES": dict.fromkeys(
                ("admin", "auth", "contenttypes", "djstripe", "sessions"),
                None,
            ),
        },
    ),
}
SITE = SITES[PEER]

DEBUG = False
SECRET_KEY = "a key for benchmarks alone, of no use anywhere else"
ALLOWED_HOSTS = ["shop.example"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "benchmarks.peers.urls"
LOGIN_REDIRECT_URL = "/who/"
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
LOGGING_CONFIG = None
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *SITE.apps,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    *SITE.middleware,
]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", *SITE.backends]
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
DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL", "sqlite:///peers.sqlite3"),
        conn_max_age=600,
    ),
}
DATABASES["default"]["TEST"] = {"NAME": f"peers_{PEER}"}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"]["NAME"] += ".sqlite3"
globals().update(SITE.settings)
