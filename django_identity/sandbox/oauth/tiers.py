"""The scopes that an application may ask for, by its tier (spec: Scopes)."""

from typing import Any

from oauth2_provider.scopes import SettingsScopes

from django_identity.sandbox.models import Client

TRUSTED_SCOPES = frozenset({"documents:read"})


class TierScopes(SettingsScopes):
    """Every scope for trusted applications, and all but the documents' content for the others."""

    def get_available_scopes(
        self, application: Client | None = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Return the scopes that the endpoints serve to ``application``."""
        scopes = super().get_available_scopes(application, *args, **kwargs)
        if application is not None and application.registered.is_trusted:
            return list(scopes)
        return [scope for scope in scopes if scope not in TRUSTED_SCOPES]
