"""The sites of the walk: what each of them, by ``$SITE``, changes of the plain one."""

import os
from typing import Any

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import (
    APPLICATION,
    DATABASES,
    INSTALLED_APPS,
    MIDDLEWARE,
    TEMPLATES,
    database,
)
from tests.snippets import text_of

SITE = os.environ["SITE"]
ROOT_URLCONF = "tests.sites.urls"
FIELDS = "{% csrf_token %}{{ form }}{{ redirect_field }}"
FORM = f'<form method="post">{FIELDS}<button>Sign in</button></form>'
ALLAUTH = f'{{% extends "account/base_entrance.html" %}}{{% block content %}}{FORM}'
#: The site's copies of pages, that of allauth with our button.
PAGES = {
    "local.html": FORM,
    "account/login.html": f"{ALLAUTH}{text_of('allauth')}{{% endblock %}}",
}
LOADERS = [
    ("django.template.loaders.locmem.Loader", PAGES),
    "django.template.loaders.app_directories.Loader",
]
NO_ADMIN = ("django.contrib.admin", "django.contrib.messages")


def with_pages(*processors: str) -> list[dict[str, Any]]:
    options = {"loaders": LOADERS, "context_processors": processors}
    return [{**TEMPLATES[0], "APP_DIRS": False, "OPTIONS": options}]


processors = TEMPLATES[0]["OPTIONS"]["context_processors"]
CHANGES: dict[str, dict[str, Any]] = {
    # People are in a database of their own, read from a replica that stands still between upkeeps.
    "replica": {
        "DATABASES": {
            "default": database("site"),
            "people": database("people"),
            "replica": database("replica"),
        },
        "DATABASE_ROUTERS": ["tests.sites.replica.PeopleRouter"],
        "SITE_READY": "tests.sites.replica.copy",
    },
    # Below a path, behind a proxy that ends TLS and takes the path away; async views under uvicorn.
    "subpath": {
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "ALLOWED_HOSTS": ["shop.example", "127.0.0.1"],
        "FORCE_SCRIPT_NAME": "/portal",
        "SESSION_COOKIE_PATH": "/portal/",
        "CSRF_COOKIE_PATH": "/portal/",
    },
    # A user model with a UUID key, an e-mail address as its name, and one more required field.
    "custom_user": {
        "INSTALLED_APPS": [*INSTALLED_APPS, "tests.sites.custom_user"],
        "AUTH_USER_MODEL": "custom_user.User",
        "SITE_USER_FIELDS": {"country": "NG"},
        "DJANGO_IDENTITY": {**APPLICATION, "POLICY": "tests.sites.urls.Policy"},
    },
    # django-allauth beside us, with both back ends, as ``docs/beside.md`` says.
    "beside_allauth": {
        "INSTALLED_APPS": [
            *INSTALLED_APPS,
            "allauth",
            "allauth.account",
            "allauth.socialaccount",
            "allauth.mfa",
            "allauth.idp.oidc",
        ],
        "MIDDLEWARE": [*MIDDLEWARE, "allauth.account.middleware.AccountMiddleware"],
        "AUTHENTICATION_BACKENDS": [
            "django.contrib.auth.backends.ModelBackend",
            "allauth.account.auth_backends.AuthenticationBackend",
            "django_identity.backends.IdentityBackend",
        ],
        "LOGIN_URL": "account_login",
        "IDENTITY_LOCAL_SIGN_IN_URL": "account_login",
        # Its migrations would take longer than most steps.
        "MIGRATION_MODULES": dict.fromkeys(
            ("account", "socialaccount", "mfa", "allauth_idp_oidc"),
        ),
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        "ACCOUNT_RATE_LIMITS": False,
        "TEMPLATES": with_pages(*processors),
        "DJANGO_IDENTITY": {
            **APPLICATION,
            "POLICY": "django_identity.allauth.AllauthPolicy",
        },
    },
    # By ASGI with simplejwt, django-ninja and a stream, as ``docs/beside.md`` says.
    "beside_others": {
        "INSTALLED_APPS": [
            *INSTALLED_APPS,
            "rest_framework",
            "rest_framework_simplejwt.token_blacklist",
        ],
        "MIGRATION_MODULES": {"token_blacklist": None},
        "REST_FRAMEWORK": {
            "DEFAULT_AUTHENTICATION_CLASSES": [
                "rest_framework_simplejwt.authentication.JWTAuthentication",
                "rest_framework.authentication.SessionAuthentication",
            ],
            "EXCEPTION_HANDLER": "django_identity.api.problems.exception_handler",
        },
    },
    # As strict as a site can be: nothing is open by itself, no cookie comes along, no inline code.
    # Every row is validated before it is saved. And without Django's admin and its messages.
    "strict": {
        "INSTALLED_APPS": [
            *(each for each in INSTALLED_APPS if each not in NO_ADMIN),
            "csp",
        ],
        "MIDDLEWARE": [
            *(each for each in MIDDLEWARE if not each.startswith(NO_ADMIN)),
            "django.contrib.auth.middleware.LoginRequiredMiddleware",
            "csp.middleware.CSPMiddleware",
        ],
        "TEMPLATES": with_pages(*processors[:-1]),
        "DATABASES": {"default": DATABASES["default"] | {"ATOMIC_REQUESTS": True}},
        "SESSION_ENGINE": "django.contrib.sessions.backends.signed_cookies",
        "SESSION_COOKIE_SAMESITE": "Strict",
        "CSRF_COOKIE_SAMESITE": "Strict",
        "SITE_READY": "tests.sites.urls.validate_every_row",
        "CONTENT_SECURITY_POLICY": {
            "DIRECTIVES": {
                "default-src": ["'self'"],
                "form-action": ["'self'", APPLICATION["AUTH_URL"]],
                "frame-ancestors": ["'none'"],
                "base-uri": ["'none'"],
            },
        },
    },
}
globals().update(CHANGES.get(SITE, {}))
if SITE == "subpath":
    # Without it, people land on the account page.
    del LOGIN_REDIRECT_URL  # noqa: F821
