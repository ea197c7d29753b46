"""As strict, with the Content-Security-Policy of Django 6 itself."""

from __future__ import annotations

import django

from tests.sites.strict.settings import *  # noqa: F403
from tests.sites.strict.settings import CONTENT_SECURITY_POLICY, MIDDLEWARE

# Older versions have no policy of their own, and keep that of django-csp.
if django.VERSION >= (6, 0):
    MIDDLEWARE = [
        *(each for each in MIDDLEWARE if not each.startswith("csp.")),
        "django.middleware.csp.ContentSecurityPolicyMiddleware",
    ]
    SECURE_CSP = CONTENT_SECURITY_POLICY["DIRECTIVES"]
