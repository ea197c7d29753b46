"""The sandbox's HTTP server, from the open port to the clean stop."""

import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django
from django.apps import apps as registry
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.urls import resolve
from django.utils.module_loading import import_string

from django_identity.sandbox import apps

SETTINGS_MODULE = "django_identity.sandbox.settings"
EVERY_INTERFACE = ("0.0.0.0", "::")  # noqa: S104 -- recognised here, not bound
logger = logging.getLogger(__name__)


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
        wrapped = self.tls.wrap_socket(
            connection,
            server_side=True,
            do_handshake_on_connect=False,
        )
        return wrapped, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who does not trust the certificate, or hangs up, is no error of the sandbox."""
        error = sys.exception()
        if isinstance(error, ssl.SSLError):
            logger.debug("TLS failed: %s", error.reason)
        else:
            super().handle_error(request, client_address)


class RequestHandler(WSGIRequestHandler):
    """Refuses chunked bodies, logs nothing itself, and lets a fault reach the connection."""

    # Headers and body leave in two writes; with Nagle's algorithm the second waits 40 ms.
    disable_nagle_algorithm = True

    def parse_request(self) -> bool:
        """Read the headers. A body without a length is refused, and the connection ends with it."""
        if not super().parse_request():
            return False
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self.send_error(411, explain="Send the body with a Content-Length.")
            return False
        return True

    def get_environ(self) -> dict[str, Any]:
        """Add the socket to the request's environment, and whether it is secure."""
        environ = super().get_environ() | {"sandbox.connection": self.connection}
        if getattr(self.server, "tls", None):
            environ["HTTPS"] = "on"
        return environ

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: ``request_log`` logs requests, without their query."""


def bind(host: str, port: int) -> SandboxServer:
    """Open the port; connections wait from now on, and are answered once ``start`` ran.

    Raises:
        OSError: the port is taken or the host is not this machine's.
    """
    return SandboxServer((host, port), RequestHandler, ipv6=":" in host)


def origin_of(server: SandboxServer) -> str:
    """Return the origin under which this machine reaches ``server``."""
    scheme = "https" if server.tls else "http"
    host = str(server.server_address[0])
    if host in EVERY_INTERFACE:
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    return f"{scheme}://{host}:{server.server_address[1]}"


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return what a server needs to prove its name.

    Raises:
        OSError: the files cannot be read, or do not belong together.
    """
    for path in (certificate, key or certificate):
        path.open("rb").close()  # its error names the file; OpenSSL's does not
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def start_django(*, sites: Sequence[str] | None, **settings: str) -> None:
    """Set up the sandbox's own Django project, whatever project the environment names.

    Args:
        sites: where the local site runs, if not at its usual addresses; None: there is none.
        settings: the settings that differ from one start to the next, without their prefix.

    Raises:
        ImproperlyConfigured: this process has the settings of a site.
        django.db.DatabaseError: the database holds another version's tables.
    """
    apps.keep_out()
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_MODULE
    for name, value in settings.items():
        os.environ[f"DJANGO_IDENTITY_SANDBOX_{name.upper()}"] = value
    django.setup()
    _create_schema()
    # Named, not imported: models can be loaded now and not before.
    import_string("django_identity.sandbox.people.accounts.move_in")()
    if sites is not None:
        import_string(
            "django_identity.sandbox.developer.applications.register_local_site",
        )(sites)


def start(server: SandboxServer) -> None:
    """Begin to answer requests, in a thread of its own."""
    server.set_app(get_wsgi_application())
    resolve("/sandbox/health")  # loads every view now instead of at the first request
    answering = threading.Thread(
        target=server.serve_forever,
        kwargs={"poll_interval": 0.05},
        daemon=True,
    )
    answering.start()


def start_sender() -> Any:
    """Begin to send webhooks; the thread that is returned has ``stop()``."""
    sender = import_string("django_identity.sandbox.events.sender.Sender")()
    sender.start()
    return sender


def stop(server: SandboxServer) -> None:
    """Answer no more requests and close the port."""
    server.shutdown()
    server.server_close()


def _create_schema() -> None:
    """Create all tables in an empty database; leave a complete one alone.

    Running every migration of Django and django-oauth-toolkit takes seconds, and the sandbox has no
    past to migrate from.
    """
    models = registry.get_models()
    if connection.introspection.table_names():
        for model in models:
            model._default_manager.first()
        return
    with connection.schema_editor() as editor:
        for model in models:
            editor.create_model(model)
