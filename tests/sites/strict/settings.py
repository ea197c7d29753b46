"""As strict as a site can be: nothing is open by itself, no cookie comes along, no inline code."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import APPLICATION, DATABASES, INSTALLED_APPS, MIDDLEWARE

ROOT_URLCONF = "tests.sites.strict.urls"
INSTALLED_APPS = [*INSTALLED_APPS, "csp"]
MIDDLEWARE = [
    *MIDDLEWARE,
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "csp.middleware.CSPMiddleware",
]
DATABASES["default"]["ATOMIC_REQUESTS"] = True
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Strict"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "form-action": ["'self'", APPLICATION["AUTH_URL"]],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
