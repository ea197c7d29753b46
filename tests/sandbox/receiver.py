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
    """One request, with the moment of its arrival."""

    body: bytes
    headers: dict[str, str]
    at: float

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    def is_signed_with(self, secret: str) -> bool:
        """Whether the header holds the signature over the bytes as they came."""
        expected = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return self.headers["x-webhook-signature"] == expected


class Receiver:
    """Answers 200 unless ``answers`` holds another status for the next requests."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Received] = []
        self.answers: list[int] = []
        self.location = ""
        self.seconds = 0.0
        self.body = b'{"received": true}'
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}/webhooks"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each.event for each in self.requests]

    @property
    def types(self) -> list[str]:
        return [each["event_type"] for each in self.events]

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """Return the events once ``count`` requests have arrived."""
        until(lambda: len(self.requests) >= count)
        return self.events

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Received(body, headers, time.monotonic()))
                status = receiver.answers.pop(0) if receiver.answers else 200
                time.sleep(receiver.seconds)
                self.send_response(status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", str(len(receiver.body)))
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    self.close_connection = True

        return Handler

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def until(condition: Callable[[], object], *, seconds: float = 120) -> None:
    """Wait for ``condition``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "It did not happen in time."
        time.sleep(0.005)
