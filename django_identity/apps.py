"""The app's entry in ``INSTALLED_APPS``."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.utils.translation import gettext_lazy as _


class IdentityConfig(AppConfig):
    name = "django_identity"
    label = "django_identity"
    verbose_name = _("Identity")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # The models are ready now.
        from django_identity import backends, background, checks  # noqa: PLC0415

        background.remember_app()
        user_logged_in.connect(
            backends.bind_session, dispatch_uid="django_identity.backends.bind_session"
        )
        checks.register_all()
