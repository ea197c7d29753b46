"""The authorization address, the PKCE pair and ``state``. Pure functions."""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from django_identity.conf import Application
from django_identity.secrets import Secret


@dataclass(frozen=True, slots=True)
class PkcePair:
    """A ``code_verifier`` and its ``code_challenge`` (RFC 7636 §4.1, §4.2)."""

    verifier: Secret
    challenge: str


def pkce_pair() -> PkcePair:
    """A new pair. The verifier has 64 characters and 384 random bits."""
    verifier = secrets.token_urlsafe(48)
    hashed = hashlib.sha256(verifier.encode("ascii")).digest()
    return PkcePair(Secret(verifier), base64.urlsafe_b64encode(hashed).rstrip(b"=").decode("ascii"))


def state_value() -> str:
    """A new ``state`` with 43 characters and 256 random bits."""
    return secrets.token_urlsafe(32)


def authorization_url(
    application: Application,
    *,
    state: str,
    code_challenge: str,
    redirect_uri: str,
    scopes: tuple[str, ...],
) -> str:
    """The address to which the browser is redirected (RFC 6749 §4.1.1, RFC 7636 §4.3)."""
    query = urlencode(
        {
            "response_type": "code",
            "client_id": application.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(scopes),
            "state": state,
            "code_challenge": code_challenge,
            "code_challenge_method": "S256",
        }
    )
    return f"{application.auth_url}/oauth2/auth?{query}"
