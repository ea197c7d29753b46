"""A Content-Security-Policy that blocks the way to the service, so that the button does nothing.

The button's form is posted to the site, which redirects to the service. Browsers apply
``form-action`` to that redirect too (CSP level 3, §6.4.1.1), silently.
"""

from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from django_identity.conf import Application
from django_identity.conf.rules import Problem, Problems

OF_DJANGO = "django.middleware.csp.ContentSecurityPolicyMiddleware"


def problems_of(application: Application) -> Problems:
    """Of Django's own setting, which leaves out a directive without a source."""
    if OF_DJANGO not in settings.MIDDLEWARE:
        return
    service = urlsplit(application.auth_url)
    policy = getattr(settings, "SECURE_CSP", None) or {}
    sources = _listed(policy.get("form-action"))
    if sources and not any(_may_allow(source.lower(), service) for source in sources):
        yield Problem(
            "E071",
            "SECURE_CSP has a form-action without the origin of AUTH_URL: the sign-in button does "
            "nothing.",
            f'Add "{service.scheme}://{service.netloc}" to form-action.',
        )


def _listed(value: Any) -> list[str]:
    """Django takes a text, or a list, tuple or set of them."""
    if value in (None, False):
        return []
    if isinstance(value, (list, tuple, set)):
        value = " ".join(map(str, value))
    return str(value).split()


def _may_allow(source: str, service: SplitResult) -> bool:
    """Whether ``source`` names the service's host, or is a pattern or a scheme: those may."""
    # "'self'", "'none'" and the like. The site and the service are two origins.
    if source.startswith("'"):
        return False
    if "*" in source or source.endswith(":"):
        return True
    return str(service.hostname) in source
