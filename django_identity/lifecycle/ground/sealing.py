"""Secrets as their rows hold them, encrypted for one row and one column.

They are the tokens of a grant, which belongs to an identity, and the verifier of a sign-in.
"""

from datetime import datetime, timedelta
from typing import Any

from django_identity import conf, vault
from django_identity.models import AuthorizationRequest, LinkedIdentity, TokenGrant
from django_identity.models.choices import Columns
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer

REFRESH_TOKEN_LIFETIME = timedelta(days=30)
# A token is not used in its last seconds, because clocks differ and a call takes time.
LONGEST_MARGIN = 60.0
MARGIN_SHARE = 0.1

Owner = LinkedIdentity | AuthorizationRequest


def seal(owner: Owner, secret: Secret, column: str) -> str:
    """The secret, encrypted under the first key.

    Its context names the owner and the column. So a token that is copied to another person's row
    stays closed.
    """
    keys = conf.application().encryption_keys
    return vault.seal(secret, keys=keys, context=owner.sealing_context(column))


def unseal(owner: Owner, row: Owner | TokenGrant, column: str) -> Secret:
    """The decrypted secret in the column of ``row``. Raises ``SealedValueUnreadable``."""
    keys = conf.application().encryption_keys
    context = owner.sealing_context(column)
    return vault.unseal(getattr(row, column), keys=keys, context=context)


def token_columns(
    identity: LinkedIdentity,
    answer: TokenAnswer,
    *,
    asked_at: datetime,
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
