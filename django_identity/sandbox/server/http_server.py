"""The sandbox's HTTP server, from the open port to the clean stop."""

import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.urls import resolve
from django.utils.module_loading import import_string

from django_identity.sandbox.server import database, own_process
from django_identity.sandbox.server.callers import is_loopback, name_of

SETTINGS_MODULE = "django_identity.sandbox.settings"
ending = threading.Event()
logger = logging.getLogger(__name__)
EVERY_INTERFACE = ("0.0.0.0", "::")  # noqa: S104 -- recognised here, not bound


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that a site is configured with, as the specification names them."""

    origin: str

    def lines(self) -> list[str]:
        """Return what is printed at the start."""
        return [
            f"API base              {self.origin}/api/v1",
            f"Authorization server  {self.origin}",
            f"Key set               {self.origin}/.well-known/jwks.json",
            f"Account pages         {self.origin}/account/",
            f"Developer portal      {self.origin}/portal/",
            f"Control API           {self.origin}/sandbox/",
            f"Console               {self.origin}/",
        ]


class SandboxServer(ThreadedWSGIServer):
    """A thread per connection, with room for a few hundred connections arriving at once."""

    request_queue_size = 512
    block_on_close = False
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Its thread does the TLS handshake, at the first read."""
        connection, address = super().get_request()
        if self.tls is None:
            return connection, address
        wrapped = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return wrapped, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who does not trust the certificate, or hangs up, is no error of the sandbox."""
        error = sys.exception()
        if isinstance(error, ssl.SSLError):
            logger.debug("TLS failed: %s", error.reason)
        else:
            super().handle_error(request, client_address)


class RequestHandler(WSGIRequestHandler):
    """Logs nothing itself, and lets an ordered fault reach the connection."""

    # Headers and body leave in two writes; with Nagle's algorithm the second waits 40 ms.
    disable_nagle_algorithm = True

    def get_environ(self) -> dict[str, Any]:
        """Add the socket to the request's environment, and whether it is secure."""
        secure: dict[str, Any] = {"HTTPS": "on"} if getattr(self.server, "tls", None) else {}
        return super().get_environ() | {"sandbox.connection": self.connection, **secure}

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: ``request_log`` logs requests, without their query."""


def bind(host: str, port: int) -> SandboxServer:
    """Open the port; connections wait from now on, and are answered once ``serve`` runs.

    Raises:
        OSError: the port is taken or the host is not this machine's.
    """
    return SandboxServer((host, port), RequestHandler, ipv6=":" in host)


def origin_of(server: SandboxServer, *, scheme: str) -> str:
    """Return the origin under which this machine reaches ``server``."""
    host, port = str(server.server_address[0]), server.server_address[1]
    if host in EVERY_INTERFACE:
        host = "127.0.0.1"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def start_django(
    *,
    origin: str,
    database_path: Path,
    portal_token: str,
    control_token: str = "",
    webhook_hosts: Sequence[str] = (),
    sites: Sequence[str] = (),
) -> None:
    """Set up the sandbox's own Django project, whatever project the environment names.

    Args:
        origin: under which the sandbox is reached.
        database_path: an SQLite file, made if it is missing.
        portal_token: the session token of the developer portal.
        control_token: what the control API asks everybody for; empty: the portal's, of others.
        sites: where the local site runs, if not at its usual addresses.
        webhook_hosts: private hosts that events may be sent to, whoever registers the address.

    Raises:
        ImproperlyConfigured: this process has the settings of a site.
        SchemaMismatch: ``database_path`` holds another version's tables.
    """
    own_process.keep_out()
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_MODULE
    os.environ["DJANGO_IDENTITY_SANDBOX_ORIGIN"] = origin
    os.environ["DJANGO_IDENTITY_SANDBOX_DATABASE"] = str(database_path)
    os.environ["DJANGO_IDENTITY_SANDBOX_PORTAL_TOKEN"] = portal_token
    os.environ["DJANGO_IDENTITY_SANDBOX_CONTROL_TOKEN"] = control_token
    os.environ["DJANGO_IDENTITY_SANDBOX_WEBHOOK_HOSTS"] = " ".join(webhook_hosts)
    django.setup()
    database.create_schema()
    # Named, not imported: models can be loaded now and not before.
    import_string("django_identity.sandbox.users.cast.move_in")()
    if sites or is_loopback(name_of(origin)):
        import_string("django_identity.sandbox.developer.applications.register_local_site")(sites)


def start(server: SandboxServer) -> None:
    """Begin to answer requests, in a thread of its own."""
    server.set_app(get_wsgi_application())
    resolve("/sandbox/health")  # loads every view now instead of at the first request
    answering = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    answering.start()


def start_sender(tls: ssl.SSLContext | None) -> Callable[[], None]:
    """Begin to send webhooks, over https to whom ``tls`` trusts; return what ends it."""
    # Named, not imported: models can be loaded once ``start_django`` has run and not before.
    sender = import_string("django_identity.sandbox.events.sender.Sender")(tls)
    sender.start()
    stop_sending: Callable[[], None] = sender.stop
    return stop_sending


def stop(server: SandboxServer) -> None:
    """Answer no more requests, end open streams and close the port."""
    ending.set()
    server.shutdown()
    server.server_close()
