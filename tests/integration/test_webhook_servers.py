"""The webhook under real servers: chunked bodies, which Django shows as empty ones."""

import gzip
import http.client
import io
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.urls import reverse

from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from django_identity.views.webhook import webhook
from tests import concurrency
from tests.deliveries import event_body, signed
from tests.factories import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 256 * 1024
HOST = "127.0.0.1"
PATIENCE = 120
CHUNK = 1000
COMMAND = [
    sys.executable,
    "-m",
    "gunicorn",
    "--workers",
    "1",
    "--threads",
    "4",
    "--preload",
    "--timeout",
    str(PATIENCE),
    "--log-level",
    "critical",
    "--no-control-socket",
]


@pytest.fixture(scope="module")
def gunicorn(django_db_setup: None) -> Iterator[int]:
    """The port at which it serves the test's database."""
    with socket.create_server((HOST, 0), backlog=64) as listener:
        port, number = listener.getsockname()[1], listener.fileno()
        process = subprocess.Popen(
            [*COMMAND, "--bind", f"fd://{number}", "tests.integration.wsgi"],
            cwd=concurrency.ROOT,
            env=concurrency.shared(),
            pass_fds=[number],
        )
    yield port
    process.terminate()
    process.wait(PATIENCE)


def deliver(port: int, body: bytes, *, chunked: bool = False, **headers: str) -> int:
    """The status of the answer. ``chunked``: the body is sent without its length."""
    link = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    sent = chunks(body) if chunked else body
    given = {
        "X-Webhook-Signature": signed(body),
        "Content-Type": "application/json",
        **headers,
    }
    try:
        link.request(
            "POST",
            reverse("identity:webhook"),
            sent,
            given,
            encode_chunked=True,
        )
        answer = link.getresponse()
        answer.read()
        return answer.status
    finally:
        link.close()


def chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]


def test_gunicorn_hands_over_a_chunked_body(gunicorn):
    """It is read to its end, up to the bound, and what it says is done."""
    make_identity(make_user())
    body = event_body("consent.revoked", note="x" * 5000)
    assert deliver(gunicorn, body, chunked=True) == 200
    assert deliver(gunicorn, body, chunked=True) == 200
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert WebhookEvent.objects.filter(event_type="consent.revoked").count() == 1
    assert deliver(gunicorn, b" " * LIMIT, chunked=True) == 400
    assert deliver(gunicorn, b" " * (LIMIT + 1), chunked=True) == 413
    zipped = gzip.compress(event_body("consent.granted"))
    encoded = {"Content-Encoding": "gzip"}
    assert deliver(gunicorn, zipped, chunked=True, **encoded) == 400
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize("end", [b"\r\n", b"\r\nnonsense\r\n", b"no end\r\n"])
def test_a_chunked_body_that_is_cut_off_is_no_event(gunicorn, end):
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
    assert deliver(gunicorn, event_body("claim.issued"), chunked=True) == 200
    assert WebhookEvent.objects.get().event_type == "claim.issued"


def test_a_server_that_marks_no_end_cannot_take_a_chunked_body(live_server):
    """``runserver``, and whatever else is made of ``wsgiref``: 411, and nobody waits for more."""
    port = urlsplit(live_server.url).port
    assert deliver(port, event_body("consent.granted"), chunked=True) == 411
    assert deliver(port, event_body("claim.issued")) == 200
    assert WebhookEvent.objects.get().event_type == "claim.issued"


def test_asgi_needs_no_length():
    """There the server has read the body to its end."""
    body = event_body("consent.granted")
    headers = [(b"x-webhook-signature", signed(body).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    assert webhook(ASGIRequest(scope, io.BytesIO(body))).status_code == 200
