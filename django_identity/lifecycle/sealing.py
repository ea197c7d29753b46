"""The tokens of a grant, as its row holds them: encrypted for one identity and one column."""

from datetime import datetime, timedelta
from typing import Any

from django.views.decorators.debug import sensitive_variables

from django_identity import conf, vault
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.models.choices import Columns
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer

REFRESH_TOKEN_LIFETIME = timedelta(days=30)
# A token is not used in its last seconds, because clocks differ and a call takes time.
LONGEST_MARGIN = 60.0
MARGIN_SHARE = 0.1


@sensitive_variables()
def seal(identity: LinkedIdentity, token: Secret, column: str) -> str:
    """The token, encrypted under the first key.

    Its context names the identity and the column. So whoever can write to the database cannot give
    one person's token to another one by copying it.
    """
    keys = conf.application(identity.application).encryption_keys
    return vault.seal(token, keys=keys, context=identity.sealing_context(column))


@sensitive_variables()
def unseal(identity: LinkedIdentity, grant: TokenGrant, column: str) -> Secret:
    """The decrypted token of the column. Raises ``SealedValueUnreadable``."""
    keys = conf.application(identity.application).encryption_keys
    context = identity.sealing_context(column)
    return vault.unseal(getattr(grant, column), keys=keys, context=context)


@sensitive_variables()
def token_columns(
    identity: LinkedIdentity, answer: TokenAnswer, *, asked_at: datetime
) -> Columns:
    """The columns that a token answer changes. Without a refresh token the stored one stays."""
    margin = min(LONGEST_MARGIN, answer.expires_in * MARGIN_SHARE)
    changed: dict[str, Any] = {
        "access_token": seal(identity, answer.access_token, "access_token"),
        "access_expires_at": asked_at + timedelta(seconds=answer.expires_in - margin),
        "lease_until": None,
        "retry_at": None,
        "needs_reauthorization": False,
    }
    if answer.refresh_token is not None:
        changed["refresh_token"] = seal(identity, answer.refresh_token, "refresh_token")
        changed["refresh_expires_at"] = asked_at + REFRESH_TOKEN_LIFETIME
    if answer.scopes is not None:
        changed["scopes"] = list(answer.scopes)
    return changed
