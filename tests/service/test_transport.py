"""One bounded exchange: who shares a connection, what one deadline covers, whom TLS trusts."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from django_identity import conf
from django_identity.exceptions import ServiceError, ServiceTimeout, ServiceUnavailable
from django_identity.service.transport import Call, exchange


class _Keeping(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = str(self.client_address[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "followed=1; Path=/")
        self.send_header("X-Cookie-Seen", self.headers.get("Cookie", "none"))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@contextmanager
def keeping_server(context: ssl.SSLContext | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Keeping)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    # How soon it notices that it is to end.
    often = {"poll_interval": 0.02}
    threading.Thread(target=server.serve_forever, kwargs=often, daemon=True).start()
    scheme = "http" if context is None else "https"
    yield f"{scheme}://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def connection_of(call: Call) -> bytes:
    """The client's port, which the server answers with: one for each connection."""
    return exchange(conf.application(), call).body


def test_reads_share_a_connection_and_no_cookie() -> None:
    """A read goes over a connection that is open already; no answer's cookie comes along."""
    with keeping_server() as origin:
        call = Call("profile", "GET", origin)
        assert connection_of(call) == connection_of(call)
        assert exchange(conf.application(), call).headers["x-cookie-seen"] == "none"


def test_what_is_sent_once_gets_a_connection_of_its_own() -> None:
    """On a kept connection nobody could tell whether the service read the request."""
    with keeping_server() as origin:
        call = Call("token", "POST", origin, form={"code": "x"}, sent_once=True)
        assert connection_of(call) != connection_of(call)


def test_a_child_process_opens_its_own_connections() -> None:
    """Parent and child never write into one connection."""
    with keeping_server() as origin:
        call = Call("profile", "GET", origin)
        mine = connection_of(call)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, connection_of(call))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 20) != mine
        assert connection_of(call) == mine
        os.close(reader)
        os.close(writer)


def test_one_deadline_covers_headers_that_drip() -> None:
    """A byte now and then keeps no call alive beyond its seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                for _ in range(30):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(ServiceTimeout) as raised:
            exchange(conf.application(), Call("profile", "GET", origin, seconds=0.3))
        assert time.monotonic() - began < 1.0
        assert raised.value.may_have_arrived


def test_a_refused_connection_says_that_nothing_arrived() -> None:
    """Whoever must not send twice may try again after this one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ServiceUnavailable) as raised:
        exchange(conf.application(), Call("profile", "GET", origin))
    assert not raised.value.may_have_arrived


def test_plain_http_is_for_this_machine_alone() -> None:
    """And never for a live application: nothing is sent that others could read."""
    live = replace(conf.application(), environment="live")
    with keeping_server() as origin:
        for application, url in ((live, origin), (conf.application(), "http://service.example")):
            with pytest.raises(ServiceError, match="plain http"):
                exchange(application, Call("token", "POST", url, form={"code": "x"}))


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    """TLS is verified, and nothing is sent to a server that cannot prove its name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_self_signed(tmp_path))
    with keeping_server(context) as origin:
        with pytest.raises(ServiceUnavailable) as raised:
            exchange(conf.application(), Call("profile", "GET", origin))
        assert not raised.value.may_have_arrived


def _self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return path
