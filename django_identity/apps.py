"""The app's entry in ``INSTALLED_APPS``."""

from importlib import import_module

from django.apps import AppConfig, apps
from django.contrib.auth.signals import user_logged_in
from django.utils.translation import gettext_lazy as _


class IdentityConfig(AppConfig):
    name = "django_identity"
    label = "django_identity"
    verbose_name = _("Identity")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # The models are ready now.
        from django_identity import backends, background, checks, telemetry  # noqa: PLC0415
        from django_identity.lifecycle import operators  # noqa: PLC0415

        if apps.is_installed("drf_spectacular"):
            import_module("django_identity.api.openapi")
        background.remember_app()
        telemetry.observe(operators.gauges)
        user_logged_in.connect(
            backends.bind_session, dispatch_uid="django_identity.backends.bind_session"
        )
        checks.register_all()
