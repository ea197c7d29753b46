"""The one request of a redemption."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_identity import conf
from django_identity.service import ServiceClient
from tests.fake_service import FakeService, serving
from tests.service.connect_calls import CODE, SCOPES, redeem


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as running:
        yield running


def test_the_request_is_the_specs(service: FakeService) -> None:
    """JSON with code and scopes, Basic credentials, and no other member."""
    answer = redeem(service)
    (sent,) = service.requests
    head, _, body = sent[2].partition(b"\r\n\r\n")
    assert sent[1] == "/api/v1/connect/request"
    assert head.startswith(b"POST ")
    assert json.loads(body) == {"connect_code": CODE, "scopes": list(SCOPES)}
    assert b"application/json" in head
    assert (answer.user_id, answer.profile.email) == ("subject-1", "ada@example.org")
    assert answer.kyc is not None
    assert answer.kyc.kyc_level == "level_2"
    assert (answer.request_id, answer.signature) == ("req_1", "a-signature")


def test_a_callback_address_goes_along(service: FakeService) -> None:
    """``callback_url`` is sent if it is given."""
    with override_settings(DJANGO_IDENTITY={"default": service.settings()}):
        client = ServiceClient(conf.application())
        client.redeem_connect_code(CODE, SCOPES, callback_url="https://site.example/")
    body = service.requests[0][2].partition(b"\r\n\r\n")[2]
    assert json.loads(body)["callback_url"] == "https://site.example/"


@pytest.mark.parametrize("secret", ["a:secret:with:colons", "geheimnis-äöü-\u4e2d\u6587-long"])
def test_any_secret_is_encoded_right(service: FakeService, secret: str) -> None:
    """Basic credentials in UTF-8; only the first colon separates (RFC 7617)."""
    redeem(service, CLIENT_SECRET=secret)
    head = service.requests[0][2].partition(b"\r\n\r\n")[0].decode()
    line = next(line for line in head.split("\r\n") if line.lower().startswith("authorization:"))
    given = base64.b64decode(line.split("Basic ")[1]).decode()
    assert given.partition(":") == ("test-client", ":", secret)


def test_a_client_id_with_a_colon_is_refused(service: FakeService) -> None:
    """Basic credentials could not carry it, so the setting is wrong."""
    with pytest.raises(ImproperlyConfigured, match="CLIENT_ID"):
        redeem(service, CLIENT_ID="a:b")
    assert service.requests == []


def test_a_kept_connection_is_never_used(service: FakeService) -> None:
    """A second code gets a connection of its own: a broken one would leave doubt."""
    body = json.dumps({"success": True, "data": service.connect_result()}).encode()
    heard_later: list[bytes] = []

    def keep_open(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(head + body)
        connection.settimeout(2)
        heard_later.append(connection.recv(65536))

    service.answers["request"] = keep_open
    redeem(service)
    redeem(service)
    assert service.calls("request") == 2
    assert not any(heard_later)
