"""An ``AdminSite`` of the site's own, and a Content-Security-Policy that only reports."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import INSTALLED_APPS, MIDDLEWARE

ROOT_URLCONF = "tests.sites.own_admin.urls"
INSTALLED_APPS = [*INSTALLED_APPS, "csp"]
MIDDLEWARE = [*MIDDLEWARE, "csp.middleware.CSPMiddleware"]
# It stops nothing, so nothing need be added to it.
CONTENT_SECURITY_POLICY_REPORT_ONLY = {
    "DIRECTIVES": {"default-src": ["'self'"], "form-action": ["'self'"]}
}
