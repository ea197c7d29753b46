"""django-allauth beside us, with both back ends, as ``docs/applications.md`` says."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import APPLICATION, INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = [*INSTALLED_APPS, "allauth", "allauth.account", "allauth.socialaccount"]
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
DJANGO_IDENTITY = {
    "default": {**APPLICATION, "POLICY": "django_identity.allauth.AllauthPolicy"},
}
