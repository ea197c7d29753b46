"""One bounded exchange: who shares a connection, what ends a call, whom TLS trusts."""

import gzip
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import respx
import trustme

from django_identity import conf
from django_identity.exceptions import MalformedAnswer, ServiceUnavailable
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.http import Answer, Call, environment_problem, exchange
from tests import fake_service
from tests.fake_service import FakeService, html, huge, reset, serving, silent
from tests.service.environment import environment
from tests.service.forward_proxy import forward_proxy


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


def proving(authority: trustme.CA, host: str = "127.0.0.1") -> ssl.SSLContext:
    """What a server needs that proves to be ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


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


def send(call: Call) -> Answer:
    return exchange(conf.application(), call)


def connection_of(call: Call) -> bytes:
    """The client's port, which the server answers with: one for each connection."""
    return send(call).body


# Connections


def test_reads_share_a_connection_and_no_cookie() -> None:
    """A read goes over a connection that is open already; no answer's cookie comes along."""
    with keeping_server() as origin:
        call = Call("profile", origin)
        assert connection_of(call) == connection_of(call)
        assert send(call).headers["x-cookie-seen"] == "none"


def test_what_is_sent_once_gets_a_connection_of_its_own() -> None:
    """On a kept connection nobody could tell whether the service read the request."""
    with keeping_server() as origin:
        call = Call("token", origin, form={"code": "x"}, sent_once=True)
        assert connection_of(call) != connection_of(call)


def test_a_child_process_opens_its_own_connections() -> None:
    """Parent and child never write into one connection."""
    with keeping_server() as origin:
        call = Call("profile", origin)
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


def test_a_read_has_no_body_and_says_nothing_of_one() -> None:
    """A GET carries no ``Content-Length``: some servers refuse one."""
    with serving() as service:
        send(Call("profile", f"{service.origin}/users/me/profile"))
        [(_, _, sent)] = service.requests
    assert b"content-length" not in sent.lower()
    assert b"accept-encoding: identity" in sent.lower()


SECRET = Secret("nothing that prints")


@pytest.mark.parametrize("bad", [html("503 Bad"), reset, silent], ids=["503", "reset", "silent"])
@pytest.mark.parametrize(
    ("method", "given"),
    [("exchange_code", {"code": "c", "code_verifier": SECRET, "redirect_uri": "https://x.y/z"}),
     ("refresh", {"refresh_token": SECRET}), ("kyc", {"subject": "a", "access_token": SECRET})],
    ids=["code", "refresh", "read"],
)  # fmt: skip
def test_nothing_is_sent_twice(method: str, given: dict[str, Any], bad: Any) -> None:
    """Whatever happens to it."""
    with serving() as service, fake_service.impatient(service):
        service.answers.update(token=bad, kyc=bad)
        with pytest.raises(ServiceUnavailable):
            getattr(ServiceClient(conf.application()), method)(**given)
        assert len(service.requests) == 1


# Limits


def profile_call(service: FakeService, **given: Any) -> Call:
    return Call("profile", f"{service.origin}/users/1/profile", seconds=0.3, **given)


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    for _ in range(600):
        connection.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("slow", [silent, drip], ids=["silent", "dripping"])
def test_a_call_ends_in_time(service: FakeService, slow: Any) -> None:
    """A byte of the body now and then keeps no call alive beyond its seconds."""
    service.answers["profile"] = slow
    began = time.monotonic()
    with pytest.raises(ServiceUnavailable) as raised:
        send(profile_call(service))
    assert time.monotonic() - began < 20
    assert raised.value.may_have_arrived


def test_a_refused_connection_says_that_nothing_arrived() -> None:
    """Whoever must not send twice may try again after this one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ServiceUnavailable) as raised:
        send(Call("profile", origin))
    assert not raised.value.may_have_arrived
    assert raised.value.network_error == "ConnectionRefusedError"


def packed(body: bytes) -> bytes:
    return fake_service.http(gzip.compress(body), headers="Content-Encoding: gzip\r\n")


@pytest.mark.parametrize(
    ("given", "error"),
    [(huge, MalformedAnswer), (packed(b'{"success": true, "data": {}}'), MalformedAnswer),
     (fake_service.redirect_to("https://evil.example", 307), ServiceUnavailable)],
    ids=["huge", "gzip", "redirect"],
)  # fmt: skip
def test_an_answer_that_is_not_read(service: FakeService, given: Any, error: type) -> None:
    """256 KB are read, and never inflated; nobody follows a redirect."""
    service.answers["profile"] = given
    with pytest.raises(error), fake_service.impatient(service):
        ServiceClient(conf.application()).profile("1", access_token=SECRET)
    assert service.calls("profile") == 1
    assert service.calls("token") == 0


def test_the_last_byte_that_is_allowed_is_read(service: FakeService) -> None:
    service.answers["profile"] = fake_service.http(b" " * 1000)
    assert len(send(profile_call(service, largest=1000)).body) == 1000
    with pytest.raises(MalformedAnswer):
        send(profile_call(service, largest=999))


# The log


@pytest.mark.parametrize("token", ["at-secret", "at-secret\r\nX-Forged: yes", "at-s\u00e9cret"])
def test_neither_log_nor_error_quotes_the_request(
    service: FakeService, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    """httpx logs addresses, and h11 quotes a header that it refuses."""
    caplog.set_level(logging.DEBUG)
    call = profile_call(service, headers={"Authorization": f"Bearer {token}"})
    said = ""
    try:
        send(call)
    except (ServiceUnavailable, UnicodeError) as error:
        said = f"{error!r} {error.__cause__!r}"
    assert "/users/1/profile" not in caplog.text
    assert "cret" not in caplog.text + said


# The environment


def test_a_certificate_that_nobody_vouches_for() -> None:
    """TLS is verified, and nothing is sent to a server that cannot prove its name."""
    with keeping_server(proving(trustme.CA())) as origin:
        with pytest.raises(ServiceUnavailable) as raised:
            send(Call("profile", origin))
        assert not raised.value.may_have_arrived
        assert raised.value.network_error == "SSLCertVerificationError"


def test_a_private_authority_is_trusted_where_the_environment_names_it(tmp_path: Path) -> None:
    """``SSL_CERT_FILE`` vouches for the name that it was given for, and for no other one."""
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(file)
    with environment(SSL_CERT_FILE=str(file)):
        with keeping_server(proving(authority)) as origin:
            assert send(Call("profile", origin)).status == 200
        other = proving(authority, "service.example")
        with keeping_server(other) as origin, pytest.raises(ServiceUnavailable):
            send(Call("profile", origin))


def test_a_proxy_sees_a_tunnel_and_nothing_of_what_goes_through_it(tmp_path: Path) -> None:
    """TLS is between the site and the service; the proxy learns the host alone."""
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(file)
    with (
        keeping_server(proving(authority)) as origin,
        forward_proxy("site:word") as proxy,
        environment(SSL_CERT_FILE=str(file), HTTPS_PROXY=proxy.address),
    ):
        for _ in range(2):
            call = Call("token", f"{origin}/token", form={"code": "secret"}, sent_once=True)
            assert send(call).status == 200
    host = origin.removeprefix("https://")
    assert proxy.asked == [f"CONNECT {host} HTTP/1.1"] * 2


def test_a_proxy_that_refuses_has_passed_nothing_on() -> None:
    """A code that was not sent may be sent again; the proxy's password is shown nowhere."""
    with forward_proxy("site:word") as proxy:
        address = proxy.address.replace("word", "another")
        call = Call("token", "https://service.example", form={"c": "x"}, sent_once=True)
        with environment(HTTPS_PROXY=address), pytest.raises(ServiceUnavailable) as raised:
            send(call)
    assert not raised.value.may_have_arrived
    assert raised.value.network_error == "ProxyError"
    assert "another" not in repr(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [("SSL_CERT_FILE", "/no/such/file", "FileNotFoundError"),
     ("SSL_CERT_FILE", __file__, "SSLError"),
     ("HTTPS_PROXY", "ftp://proxy.example", "ValueError"), ("HTTPS_PROXY", "a:b", "InvalidURL"),
     ("HTTPS_PROXY", "http://site:word@127.0.0.1:3128", "")],
)  # fmt: skip
def test_an_environment_that_cannot_work_is_said(name: str, value: str, problem: str) -> None:
    with environment(**{name: value}):
        assert environment_problem() == problem


def test_a_mocked_service_is_never_called() -> None:
    """respx answers in the service's place, as with any client of httpx."""
    with respx.mock() as mocked:
        mocked.get("https://service.example/me").respond(json={"success": True})
        answer = send(Call("me", "https://service.example/me"))
    assert answer.body == b'{"success":true}'
