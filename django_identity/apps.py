"""The app's entry in ``INSTALLED_APPS``."""

from django.apps import AppConfig, apps
from django.contrib.auth.signals import user_logged_in
from django.db.models import Model
from django.db.models.signals import pre_delete
from django.utils.translation import gettext_lazy as _


class IdentityConfig(AppConfig):
    name = "django_identity"
    label = "django_identity"
    verbose_name = _("Identity")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Not at the top: they import models, which Django loads after this file.
        from django_identity import backends, background, checks  # noqa: PLC0415
        from django_identity.lifecycle.ground import withdrawal  # noqa: PLC0415

        background.remember_app()
        user_logged_in.connect(
            backends.bind_session,
            dispatch_uid="django_identity.backends.bind_session",
        )
        for model in self._identity_models():
            pre_delete.connect(
                withdrawal.forget,
                sender=model,
                dispatch_uid="django_identity.withdrawal.forget",
            )
        checks.register_all()

    def _identity_models(self) -> list[type[Model]]:
        """The model of identities, and the site's proxies of it: a proxy sends its own signals."""
        identities = self.get_model("LinkedIdentity")
        installed = apps.get_models()
        return [
            model for model in installed if model._meta.concrete_model is identities
        ]
