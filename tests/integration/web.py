"""A web server as sites run it: one process that forks another to answer, and again if that dies.

``Web`` is the test's end of it; ``serve`` what its process does.
"""

import http.client
import os
import signal
import sys
from typing import Self

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.urls import reverse

from tests import concurrency
from tests.deliveries import signed

HOST = "127.0.0.1"
POLL_SECONDS = 0.05


class _Server(ThreadedWSGIServer):
    """Ends itself when the process that forked it is gone."""

    request_queue_size = 64
    parent = 0

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)


class _Handler(WSGIRequestHandler):
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def serve() -> None:
    """Listen, print the port, and then the process id of each child that answers."""
    server = _Server((HOST, 0), _Handler)
    server.set_app(get_wsgi_application())
    server.parent = os.getpid()
    _say(server.server_port)
    while True:
        child = os.fork()
        if not child:
            _say(os.getpid())
            server.serve_forever(POLL_SECONDS)
        os.waitpid(child, 0)


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


class Web:
    """The running server, on the test's database."""

    def __enter__(self) -> Self:
        self._process = concurrency.start("tests.integration.web:serve")
        self.port = self._heard()
        self._child = self._heard()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        # Its output ends only when the child has ended, too.
        self._process.communicate()

    def deliver(self, body: bytes) -> int | None:
        """The status of the answer; None if there was none."""
        headers = {"X-Webhook-Signature": signed(body), "Content-Type": "application/json"}
        link = http.client.HTTPConnection(HOST, self.port, timeout=120)
        try:
            link.request("POST", reverse("identity:webhook"), body, headers)
            answer = link.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            link.close()
        return answer.status

    def kill(self) -> None:
        """End whoever answers, at once; returns when somebody else does."""
        os.kill(self._child, signal.SIGKILL)
        self._child = self._heard()

    def _heard(self) -> int:
        return int(self._process.stdout.readline())
