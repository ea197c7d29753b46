"""The sandbox keeps out of any process that serves a site."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

IN_LIVE = "The identity sandbox does not run in a process that serves a site in live."
IN_A_SITE = "The identity sandbox does not run in a process that has a site's settings."
BY_ITSELF = "Start it by itself: python -m django_identity.sandbox"


def refusal() -> str:
    """Return why the sandbox cannot run in this process; empty if it can."""
    if not settings.configured or hasattr(settings, "SANDBOX_ORIGIN"):
        return ""
    applications = getattr(settings, "DJANGO_IDENTITY", None)
    given = applications.values() if isinstance(applications, dict) else ()
    in_live = any(isinstance(each, dict) and each.get("ENVIRONMENT") == "live" for each in given)
    return f"{IN_LIVE if in_live else IN_A_SITE} {BY_ITSELF}"


def keep_out() -> None:
    """Refuse to be part of a site.

    Raises:
        ImproperlyConfigured: this process has the settings of a site.
    """
    if reason := refusal():
        raise ImproperlyConfigured(reason)
