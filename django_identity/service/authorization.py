"""The authorization address and PKCE. Pure functions."""

import base64
import hashlib
import secrets
from urllib.parse import urlencode

from django_identity.conf import Application
from django_identity.conf.rules import Scopes
from django_identity.secrets import Secret


def code_verifier() -> Secret:
    """A new ``code_verifier`` with 64 characters and 384 random bits (RFC 7636 §4.1)."""
    return Secret(secrets.token_urlsafe(48))


def code_challenge(verifier: Secret) -> str:
    """The verifier's ``code_challenge`` (RFC 7636 §4.2)."""
    hashed = hashlib.sha256(verifier.reveal().encode("ascii")).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode("ascii")


def authorization_url(
    application: Application,
    *,
    state: str,
    verifier: Secret,
    redirect_uri: str,
    scopes: Scopes,
) -> str:
    """The address to which the browser is redirected (RFC 6749 §4.1.1, RFC 7636 §4.3)."""
    query = urlencode(
        {
            "response_type": "code",
            "client_id": application.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(scopes),
            "state": state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
        },
    )
    return f"{application.auth_url}/oauth2/auth?{query}"
