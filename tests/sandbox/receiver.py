"""A site's webhook address: a real HTTP server that keeps what arrives and answers as told."""

import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

SECRET = "whsec_of_the_tests"


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    body: bytes
    headers: dict[str, str]

    def is_signed_with(self, secret: str) -> bool:
        """Whether the header holds the signature over the bytes as they came."""
        expected = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return self.headers["x-webhook-signature"] == expected


class Receiver(ThreadingHTTPServer):
    """Answers 200 unless ``answers`` holds another status for the next requests.

    ``is_coming``: whether a request is still on its way. An event that was never sent is missed at
    once then, and not after two minutes.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        *,
        is_coming: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.is_coming = is_coming
        self.requests: list[Received] = []
        self.answers: list[int] = []
        self.location = ""
        self.body = b'{"received": true}'
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}/webhooks"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.requests]

    @property
    def types(self) -> list[str]:
        return [each["event_type"] for each in self.events]

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """Return the events once ``count`` requests have arrived."""
        until(lambda: len(self.requests) >= count or not self.is_coming())
        assert len(self.requests) >= count, f"Nothing is sent after {self.types}"
        return self.events

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,)).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Keeps a delivery, and answers it."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Received(body, headers))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def until(condition: Callable[[], object], *, seconds: float = 120) -> None:
    """Wait for ``condition``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "It did not happen in time."
        time.sleep(0.005)
