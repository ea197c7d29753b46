"""Whether the site's Content-Security-Policy stops the button.

Its form is posted to the site, which redirects to the service. Browsers apply ``form-action`` to
that redirect too. Only a policy in a known setting is seen here, not one of the site's own code.
"""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from django.conf import settings

from django_identity import conf
from django_identity.conf.rules import origin_of

DJANGO = "django.middleware.csp.ContentSecurityPolicyMiddleware"
DJANGO_CSP = "csp.middleware.CSPMiddleware"


def blocks_button(application: conf.Application) -> bool:
    """Whether a policy has a ``form-action`` without the origin of ``AUTH_URL``."""
    origin = origin_of(application.auth_url)
    return not all(_allows(sources, origin) for sources in _form_actions())


def _form_actions() -> Iterator[Collection[str]]:
    """The sources of ``form-action`` in each policy that is in force."""
    own = getattr(settings, "CONTENT_SECURITY_POLICY", None) or {}
    for middleware, directives in (
        (DJANGO, getattr(settings, "SECURE_CSP", None)),
        (DJANGO_CSP, own.get("DIRECTIVES")),
    ):
        sources = directives.get("form-action") if isinstance(directives, dict) else None
        if sources is not None and middleware in settings.MIDDLEWARE:
            yield [sources] if isinstance(sources, str) else list(sources)


def _allows(sources: Collection[str], origin: str) -> bool:
    scheme, host = urlsplit(origin).scheme, urlsplit(origin).netloc
    patterns = [str(source).rstrip("/") for source in sources]
    return f"{scheme}:" in patterns or any(
        fnmatchcase(name, pattern) for name in (origin, host) for pattern in patterns
    )
