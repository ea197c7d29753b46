"""gunicorn on the test's database."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Self

from django.urls import reverse

from tests import concurrency
from tests.deliveries import signed

HOST = "127.0.0.1"
PATIENCE = 120
CHUNK = 1000
COMMAND = [
    sys.executable, "-m", "gunicorn", "--workers", "1", "--threads", "4", "--preload",
    "--timeout", str(PATIENCE), "--log-level", "critical", "--no-control-socket",
]  # fmt: skip


class GunicornServer:
    def __enter__(self) -> Self:
        with socket.create_server((HOST, 0), backlog=64) as listener:
            self.port, number = listener.getsockname()[1], listener.fileno()
            self._process = subprocess.Popen(
                [*COMMAND, "--bind", f"fd://{number}", "tests.integration.wsgi"],
                cwd=concurrency.ROOT,
                env=concurrency.shared(),
                pass_fds=[number],
            )
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)


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
            "POST", reverse("identity:webhook"), sent, given, encode_chunked=True
        )
        answer = link.getresponse()
        answer.read()
        return answer.status
    finally:
        link.close()


def chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]
