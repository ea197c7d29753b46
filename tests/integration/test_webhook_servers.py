"""The webhook under real servers: chunked bodies, which Django shows as empty ones."""

import gzip
import http.client
import io
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.urls import reverse

from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from django_identity.views.webhook import webhook
from tests import concurrency
from tests.deliveries import event_body, signed
from tests.factories import make_identity, make_user
from tests.integration.web import HOST, Web

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 256 * 1024
PATIENCE = 120
CHUNK = 1000


@pytest.fixture(scope="module")
def gunicorn(django_db_setup: None) -> Iterator[int]:
    """The port at which gunicorn serves a site on the test's database."""
    command = [
        sys.executable, "-m", "gunicorn", "--workers", "1", "--log-level", "critical",
        "--no-control-socket",
    ]  # fmt: skip
    with socket.create_server((HOST, 0)) as listener:
        number = listener.fileno()
        process = subprocess.Popen(
            [*command, "--bind", f"fd://{number}", "tests.integration.site"],
            cwd=concurrency.ROOT,
            env=concurrency.shared(),
            pass_fds=[number],
        )
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.wait(PATIENCE)


def chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]


def deliver_chunked(port: int, body: bytes, **headers: str) -> int:
    """The status for a body that is sent in chunks, without a length."""
    link = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    given = {"X-Webhook-Signature": signed(body), **headers}
    try:
        link.request("POST", reverse("identity:webhook"), chunks(body), given, encode_chunked=True)
        answer = link.getresponse()
        answer.read()
        return answer.status
    finally:
        link.close()


def test_gunicorn_hands_over_a_chunked_body(gunicorn: int) -> None:
    """It is read to its end, up to the bound, and what it says is done."""
    make_identity(make_user())
    body = event_body("consent.revoked", note="x" * 5000)
    assert deliver_chunked(gunicorn, body) == 200
    assert deliver_chunked(gunicorn, body) == 200
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert WebhookEvent.objects.filter(event_type="consent.revoked").count() == 1
    assert deliver_chunked(gunicorn, b" " * LIMIT) == 400
    assert deliver_chunked(gunicorn, b" " * (LIMIT + 1)) == 413
    zipped = gzip.compress(event_body("consent.granted"))
    assert deliver_chunked(gunicorn, zipped, **{"Content-Encoding": "gzip"}) == 400
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize("end", [b"\r\n", b"\r\nnonsense\r\n", b"no end\r\n"])
def test_a_chunked_body_that_is_cut_off_is_no_event(gunicorn: int, end: bytes) -> None:
    """Nothing of it is stored, though it was all there but for the end's mark."""
    body = event_body("consent.granted")
    head = (
        f"POST {reverse('identity:webhook')} HTTP/1.1\r\nHost: localhost\r\n"
        f"X-Webhook-Signature: {signed(body)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((HOST, gunicorn), timeout=PATIENCE) as link:
        link.sendall(head.encode() + f"{len(body):x}\r\n".encode() + body + end)
        link.shutdown(socket.SHUT_WR)
        answered = link.recv(1000)
    # Without the end's mark an older server takes it for a body that is not what was signed.
    assert answered.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 "))
    assert not WebhookEvent.objects.exists()
    assert deliver_chunked(gunicorn, event_body("claim.issued")) == 200
    assert [event.event_type for event in WebhookEvent.objects.all()] == ["claim.issued"]


def test_a_server_that_marks_no_end_cannot_take_a_chunked_body() -> None:
    """``runserver``, and whatever else is made of ``wsgiref``: 411, and nobody waits for more."""
    with Web() as web:
        assert deliver_chunked(web.port, event_body("consent.granted")) == 411
        assert web.deliver(event_body("claim.issued")) == 200
    assert [event.event_type for event in WebhookEvent.objects.all()] == ["claim.issued"]


def test_asgi_needs_no_length() -> None:
    """There the server has read the body to its end."""
    body = event_body("consent.granted")
    headers = [(b"x-webhook-signature", signed(body).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    assert webhook(ASGIRequest(scope, io.BytesIO(body))).status_code == 200
