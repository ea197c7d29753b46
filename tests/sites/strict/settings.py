"""As strict as a site can be: nothing is open by itself, no cookie comes along, no inline code.

Every row is validated before it is saved. And without Django's admin and its messages.
"""

from pathlib import Path

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import (
    APPLICATION,
    DATABASES,
    INSTALLED_APPS,
    MIDDLEWARE,
    TEMPLATES,
)

ROOT_URLCONF = "tests.sites.strict.urls"
ABSENT = ("django.contrib.admin", "django.contrib.messages")
INSTALLED_APPS = [*(each for each in INSTALLED_APPS if each not in ABSENT), "csp"]
MIDDLEWARE = [
    *(each for each in MIDDLEWARE if not each.startswith(ABSENT)),
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "csp.middleware.CSPMiddleware",
]
TEMPLATES[0]["DIRS"] = [Path(__file__).with_name("templates")]
TEMPLATES[0]["OPTIONS"]["context_processors"].pop()  # that of the messages
DATABASES["default"]["ATOMIC_REQUESTS"] = True
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Strict"
SITE_READY = "tests.sites.strict.validation.validate_every_row"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "form-action": ["'self'", APPLICATION["AUTH_URL"]],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
