"""Authentication of an application by its client id and secret (spec: Authentication)."""

import base64
import binascii

from django.contrib.auth.hashers import check_password
from django.http import HttpRequest

from django_identity.sandbox import envelope, request_log
from django_identity.sandbox.models import Client

CHALLENGE = 'Basic realm="clients", charset="UTF-8"'


def authenticate(request: HttpRequest) -> tuple[Client, str]:
    """Return the client of the request's Basic credentials (RFC 7617), and its secret.

    Raises:
        Refused: they are missing or wrong.
    """
    client_id, secret = basic_credentials(request.headers.get("Authorization", "")) or (
        "",
        "",
    )
    client = known(client_id, secret)
    if client is None:
        message = "The client id or secret is wrong."
        raise envelope.Refused(401, envelope.UNAUTHORIZED, message, challenge=CHALLENGE)
    request_log.note(request, None, client)
    return client, secret


def is_basic(header: str) -> bool:
    """Return whether the header ``Authorization`` is of the Basic scheme, well-formed or not."""
    return header.partition(" ")[0].lower() == "basic"


def basic_credentials(header: str) -> tuple[str, str] | None:
    """Return client id and secret of a header ``Authorization``, if it has the Basic form."""
    if not is_basic(header):
        return None
    encoded = header.partition(" ")[2]
    try:
        credentials = base64.b64decode(encoded.strip(" "), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    # Only the first colon separates: a client id has none, a secret may.
    client_id, _colon, secret = credentials.partition(":")
    return client_id, secret


def known(client_id: str, secret: str) -> Client | None:
    """Return the credential set with this id, if the secret is its own."""
    client = (
        Client.objects.select_related("registered").filter(client_id=client_id).first()
    )
    if client and check_password(secret, client.client_secret):
        return client
    return None
