"""The sandbox's Django application, and what keeps it out of any process that serves a site."""

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

IN_A_SITE = (
    "The identity sandbox does not run in a process that has a site's settings. "
    "Start it by itself: identity-sandbox"
)


class SandboxConfig(AppConfig):
    """Registers the sandbox's models, templates and static files under the label ``sandbox``."""

    name = "django_identity.sandbox"
    label = "sandbox"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Load the models, but none into a site that installs the sandbox: its check fails."""
        if is_in_a_site():
            self.models = {}
        else:
            super().import_models()


def is_in_a_site() -> bool:
    """Return whether this process has the settings of a site."""
    return settings.configured and not hasattr(settings, "SANDBOX_ORIGIN")


def keep_out() -> None:
    """Refuse to be part of a site.

    Raises:
        ImproperlyConfigured: this process has the settings of a site.
    """
    if is_in_a_site():
        raise ImproperlyConfigured(IN_A_SITE)
