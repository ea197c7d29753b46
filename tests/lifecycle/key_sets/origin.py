"""The service's origin as the key set's tests need it: real, and misbehaving on demand."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import trustme
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.service.answers import ClaimsAnswer
from tests.credentials.issuer import DISCLOSURES, KEY, header, join, jwk, payload, token
from tests.fake_service import FakeService, http

KEYS: dict[str, ec.EllipticCurvePrivateKey] = {"key-1": KEY}


def key_of(kid: str) -> ec.EllipticCurvePrivateKey:
    """The private key of that name, made when it is first needed."""
    return KEYS.setdefault(kid, ec.generate_private_key(ec.SECP256R1()))


def document(*kids: str) -> str:
    return json.dumps({"keys": [jwk(kid, key_of(kid)) for kid in kids]})


def publish(service: FakeService, *kids: str, headers: str = "", status: str = "200 OK") -> None:
    """From now on the key set is this one."""
    service.answers["jwks"] = http(document(*kids).encode(), status=status, headers=headers)


def slowly(seconds: float, *kids: str) -> Callable[[Any], None]:
    """An answer that takes its time."""

    def answer(connection: Any) -> None:
        time.sleep(seconds)
        connection.sendall(http(document(*kids).encode()))

    return answer


def claims_answer(service: FakeService, kid: str, **head: Any) -> ClaimsAnswer:
    """The service's claims response with a credential signed by the key of that name."""
    now = int(time.time())
    body = payload(iss=service.origin, aud=service.client_id, sub="subject-1", iat=now)
    body["exp"] = now + 86_400
    text = join(token(header(kid=kid, **head), body, key_of(kid)), DISCLOSURES)
    return ClaimsAnswer("subject-1", (), text)


@contextmanager
def distrusted_listener() -> Iterator[int]:
    """The port of a TLS server on loopback whose certificate nobody vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
                    tls.sendall(http(document("key-1").encode()))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
