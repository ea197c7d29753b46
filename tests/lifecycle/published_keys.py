"""The keys that the service publishes in a test, and how time passes for their key set."""

import json
import time
from collections import deque
from collections.abc import Callable
from socket import socket
from typing import Any

from django_identity.lifecycle.said import key_sets
from django_identity.service.answers import ClaimsAnswer
from tests.credentials.issuer import (
    DISCLOSURES,
    KEY,
    OTHER_KEY,
    header,
    join,
    jwk,
    payload,
    token,
)
from tests.fake_service import FakeService, http

KEYS = {"key-1": KEY, "key-2": OTHER_KEY}


def document(*kids: str) -> bytes:
    return json.dumps({"keys": [jwk(kid, KEYS[kid]) for kid in kids]}).encode()


def publish(
    service: FakeService, *kids: str, headers: str = "", status: str = "200 OK"
) -> None:
    """From now on the key set is this one."""
    service.answers["jwks"] = http(document(*kids), status=status, headers=headers)


def slowly(seconds: float, *kids: str) -> Callable[[socket], None]:
    """An answer that takes its time."""

    def answer(connection: socket) -> None:
        time.sleep(seconds)
        connection.sendall(http(document(*kids)))

    return answer


def claims_answer(
    service: FakeService, kid: str, *, signed_by: str = "", **head: Any
) -> ClaimsAnswer:
    """The service's claims response with a credential signed by the key of that name."""
    now = int(time.time())
    claims = {"iss": service.origin, "aud": service.client_id, "sub": service.subject}
    body = payload(**claims, iat=now, exp=now + 86_400)
    text = join(
        token(header(kid=kid, **head), body, KEYS.get(signed_by or kid, KEY)),
        DISCLOSURES,
    )
    return ClaimsAnswer(service.subject, (), text)


def time_passes(seconds: float) -> None:
    """Make all key sets of this process older."""
    for origin in key_sets._origins.values():
        origin.began -= seconds
        origin.tries = deque(
            (moment - seconds for moment in origin.tries), origin.tries.maxlen
        )
