"""A Content-Security-Policy that keeps people from the service: the button does nothing then.

The button's form is posted to the site, which redirects to the service. Browsers apply
``form-action`` to that redirect too (CSP level 3, §6.4.1.1), and show no error.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from django_identity.conf import Application
from django_identity.conf.rules import Problem, Problems

OF_DJANGO = "django.middleware.csp.ContentSecurityPolicyMiddleware"
OF_DJANGO_CSP = "csp.middleware.CSPMiddleware"
DEFAULT_PORTS = {"http": 80, "https": 443}
# CSP level 3, §2.3.1. The path is not compared after a redirect.
SOURCE = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?"
    r"(?P<host>\*|(?:\*\.)?[a-z0-9_.-]+)"
    r"(?::(?P<port>[0-9]+|\*))?"
    r"(?:/.*)?"
)


def problems_of(application: Application) -> Problems:
    service = urlsplit(application.auth_url)
    for setting, sources in _form_actions():
        if not any(_allows(source.lower(), service) for source in sources):
            yield Problem(
                "E071",
                f"{setting} has a form-action without the origin of AUTH_URL of the application "
                f"{application.alias!r}: the sign-in button does nothing.",
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
        if value is not None and not _is_left_out(policy.get("EXCLUDE_URL_PREFIXES")):
            yield "CONTENT_SECURITY_POLICY", _listed(value)


def _listed(value: Any) -> list[str]:
    """Both packages take a text, or a list, tuple or set of them."""
    if value in (None, False):
        return []
    if isinstance(value, (list, tuple, set)):
        value = " ".join(map(str, value))
    return str(value).split()


def _is_left_out(prefixes: Iterable[str] | None) -> bool:
    """Whether django-csp sends no policy with the login page."""
    try:
        login = reverse("identity:login")
    except NoReverseMatch:
        return False
    return login.startswith(tuple(prefixes or ()))


def _allows(source: str, service: SplitResult) -> bool:
    """Whether ``source`` may match the service's origin. If it is not understood, it may."""
    # A scheme also allows its secure form (§6.7.2.8).
    schemes = (service.scheme, service.scheme.replace("https", "http"))
    if source.endswith(":"):
        return source.removesuffix(":") in schemes
    # "'self'", "'none'" and the like. The site and the service are two origins.
    if source.startswith("'"):
        return False
    found = SOURCE.fullmatch(source)
    if found is None:
        return True
    if found["scheme"] is not None and found["scheme"] not in schemes:
        return False
    return _has_host(found["host"], service) and _has_port(found["port"], service)


def _has_host(host: str, service: SplitResult) -> bool:
    if host.startswith("*"):
        return (service.hostname or "").endswith(host.removeprefix("*"))
    return host == service.hostname


def _has_port(port: str | None, service: SplitResult) -> bool:
    if port == "*":
        return True
    default = DEFAULT_PORTS[service.scheme]
    actual = service.port or default
    if port is None:
        return actual == default
    allowed = int(port)
    if allowed == 80 and actual == 443:
        # The secure form of port 80 (§6.7.2.11).
        return True
    return allowed == actual
