"""The grant of a linked identity: sealed when it is stored, unsealed where it is used."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import vault
from django_identity.conf import Application
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service.messages import TokenAnswer

REFRESH_TOKEN_LIFETIME = timedelta(days=30)


@sensitive_variables()
def store(application: Application, identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Keep the tokens of a sign-in, in place of any older ones.

    ``generation`` rises, so that a refresh of the older ones that is on its way stores nothing.
    """
    now = timezone.now()
    refresh_token = answer.refresh_token or ""
    sealed = {
        "access_token": _seal(application, identity, "access_token", answer.access_token),
        "refresh_token": _seal(application, identity, "refresh_token", refresh_token),
        "scopes": list(answer.scopes if answer.scopes is not None else application.scopes),
        "access_expires_at": now + timedelta(seconds=answer.expires_in),
        "refresh_expires_at": now + REFRESH_TOKEN_LIFETIME if refresh_token else None,
        "lease_until": None,
        "needs_reauthorization": False,
    }
    replaced = TokenGrant.objects.filter(identity=identity).update(
        generation=F("generation") + 1, updated_at=now, **sealed
    )
    if not replaced:
        TokenGrant.objects.create(identity=identity, **sealed)


@sensitive_variables()
def _seal(application: Application, identity: LinkedIdentity, column: str, token: str) -> str:
    if not token:
        return ""
    keys = application.encryption_keys
    return vault.seal(token, keys=keys, context=identity.sealing_context(column))
