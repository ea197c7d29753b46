"""The app's entry in ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.core.checks import Tags, register
from django.utils.translation import gettext_lazy as _


class IdentityConfig(AppConfig):
    name = "django_identity"
    label = "django_identity"
    verbose_name = _("Identity")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_identity import backends, background, checks  # noqa: PLC0415  models: ready now

        background.remember_app()
        user_logged_in.connect(
            backends.bind_session, dispatch_uid="django_identity.backends.bind_session"
        )
        register(checks.check_applications, Tags.security)
        register(checks.check_installation, Tags.security)
        register(checks.check_development_only, Tags.security)
        register(checks.check_sandbox_application, Tags.security)
        register(checks.check_deployed_sandbox_application, Tags.security, deploy=True)
