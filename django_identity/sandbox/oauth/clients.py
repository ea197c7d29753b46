"""Basic authentication of an application (RFC 7617; spec: Authentication)."""

import base64
import binascii
from dataclasses import dataclass, field

from django.contrib.auth.hashers import check_password
from django.http import HttpRequest

from django_identity.sandbox.models import Client

CHALLENGE = 'Basic realm="clients", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """An authenticated credential set, with the secret of the request."""

    client: Client
    secret: str = field(repr=False)


def authenticate(request: HttpRequest) -> AuthenticatedClient | None:
    """Return the client of the request's credentials, or None if they are missing or wrong."""
    scheme, _space, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        credentials = base64.b64decode(encoded.strip(" "), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    # Only the first colon separates: a client id has none, a secret may.
    client_id, _colon, secret = credentials.partition(":")
    client = Client.objects.select_related("registered").filter(client_id=client_id).first()
    if client is None or not check_password(secret, client.client_secret):
        return None
    return AuthenticatedClient(client, secret)
