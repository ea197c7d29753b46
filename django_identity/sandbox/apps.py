"""The sandbox's Django application."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    """Registers the sandbox's models, templates and static files under the label ``sandbox``."""

    name = "django_identity.sandbox"
    label = "sandbox"
    default_auto_field = "django.db.models.BigAutoField"
