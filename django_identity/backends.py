"""The authentication backend: sessions of the identity sign-in, which end with the consent."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import BaseBackend
from django.db.models import Exists, OuterRef, Q

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity

BACKEND_PATH = "django_identity.backends.IdentityBackend"


class IdentityBackend(BaseBackend):
    """Loads the user of a session that began with an identity sign-in.

    It never authenticates by itself: the callback does, and names this backend.
    """

    def get_user(self, user_id: Any) -> Any:
        """The user, while they are active and a consent of theirs is granted: one query."""
        model = get_user_model()
        configured = Q()
        for alias in conf.aliases():
            environment = conf.application(alias).environment
            configured |= Q(application=alias, environment=environment)
        granted = LinkedIdentity.objects.filter(
            configured, user_id=OuterRef("pk"), consent=Consent.GRANTED
        )
        user = model._default_manager.filter(Exists(granted), pk=user_id).first()
        return user if user is not None and user.is_active else None
