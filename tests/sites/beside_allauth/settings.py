"""django-allauth beside us, with both back ends, as ``docs/beside.md`` says."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import (
    APPLICATION,
    INSTALLED_APPS,
    MIDDLEWARE,
    TEMPLATES,
)
from tests.snippets import text_of

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
]
MIDDLEWARE = [*MIDDLEWARE, "allauth.account.middleware.AccountMiddleware"]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
    "django_identity.backends.IdentityBackend",
]
ROOT_URLCONF = "tests.sites.beside_allauth.urls"
LOGIN_URL = "account_login"
IDENTITY_LOCAL_SIGN_IN_URL = "account_login"
# Its migrations would take longer than most steps.
MIGRATION_MODULES = {"account": None, "socialaccount": None}
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = False
# The site's copy of allauth's page, with the button.
LOGIN_PAGE = f"""
{{% extends "account/base_entrance.html" %}}
{{% block content %}}
<form method="post">
  {{% csrf_token %}}{{{{ form }}}}{{{{ redirect_field }}}}<button>Sign in</button>
</form>
{text_of("allauth")}
{{% endblock %}}
"""
LOADERS = [
    ("django.template.loaders.locmem.Loader", {"account/login.html": LOGIN_PAGE}),
    "django.template.loaders.app_directories.Loader",
]
OPTIONS = {**TEMPLATES[0]["OPTIONS"], "loaders": LOADERS}
TEMPLATES = [{**TEMPLATES[0], "APP_DIRS": False, "OPTIONS": OPTIONS}]
DJANGO_IDENTITY = {**APPLICATION, "POLICY": "django_identity.allauth.AllauthPolicy"}
