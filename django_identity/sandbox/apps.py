"""The sandbox's Django application."""

from django.apps import AppConfig

from django_identity.sandbox.server import own_process


class SandboxConfig(AppConfig):
    """Registers the sandbox's models, templates and static files under the label ``sandbox``."""

    name = "django_identity.sandbox"
    label = "sandbox"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Load the models, but none into a site that installs the sandbox: its check fails."""
        if own_process.refusal():
            self.models = {}
        else:
            super().import_models()
