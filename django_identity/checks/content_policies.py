"""A Content-Security-Policy that keeps people from the service: the button does nothing then.

The button's form is posted to the site, which redirects to the service. Browsers apply
``form-action`` to that redirect too (CSP level 3, §6.4.1.1), and show no error.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from django_identity.conf import Application
from django_identity.conf.rules import Problem, Problems

OF_DJANGO = "django.middleware.csp.ContentSecurityPolicyMiddleware"
OF_DJANGO_CSP = "csp.middleware.CSPMiddleware"


def problems_of(application: Application) -> Problems:
    service = urlsplit(application.auth_url)
    for setting, sources in _form_actions():
        if not any(_may_allow(source.lower(), service) for source in sources):
            yield Problem(
                "E071",
                f"{setting} has a form-action without the origin of AUTH_URL: "
                "the sign-in button does nothing.",
                f'Add "{service.scheme}://{service.netloc}" to form-action.',
            )


def _form_actions() -> Iterator[tuple[str, list[str]]]:
    """The setting's name and the sources of each ``form-action`` that our pages are sent with."""
    if OF_DJANGO in settings.MIDDLEWARE:
        policy = getattr(settings, "SECURE_CSP", None) or {}
        sources = _listed(policy.get("form-action"))
        # Django leaves out a directive without a source.
        if sources:
            yield "SECURE_CSP", sources
    if OF_DJANGO_CSP in settings.MIDDLEWARE:
        policy = getattr(settings, "CONTENT_SECURITY_POLICY", None) or {}
        value = policy.get("DIRECTIVES", {}).get("form-action")
        # Some pages may have no policy at all, and ours may be among them.
        if value is not None and not policy.get("EXCLUDE_URL_PREFIXES"):
            yield "CONTENT_SECURITY_POLICY", _listed(value)


def _listed(value: Any) -> list[str]:
    """Both packages take a text, or a list, tuple or set of them."""
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
