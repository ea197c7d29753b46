"""One bounded exchange: who shares a connection, what one deadline covers, whom TLS trusts."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from django_identity import conf
from django_identity.exceptions import (
    AnswerTooLarge,
    ConfigurationError,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from django_identity.service.transport import Call, exchange, http_client
from tests.hostile import hostile_service, huge
from tests.service.authority import Authority
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


def test_plain_http_goes_to_a_host_that_a_test_site_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """To that one alone, and never for a live application, whatever it names."""
    resolve = socket.getaddrinfo

    def resolve_here(host: str, *given: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if host == "sandbox.test" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_here)
    naming = replace(conf.application(), insecure_test_hosts=("sandbox.test",))
    with keeping_server() as origin:
        named = origin.replace("127.0.0.1", "sandbox.test")
        assert exchange(naming, Call("profile", "GET", named)).status == 200
        for application, url in (
            (naming, "http://other.test"),
            (naming, "http://x.sandbox.test"),
            (replace(naming, environment="live"), named),
        ):
            with pytest.raises(ServiceError, match="plain http"):
                exchange(application, Call("token", "POST", url, form={"code": "x"}))


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    """TLS is verified, and nothing is sent to a server that cannot prove its name."""
    with keeping_server(Authority(tmp_path).server_context()) as origin:
        with pytest.raises(ServiceUnavailable) as raised:
            exchange(conf.application(), Call("profile", "GET", origin))
        assert not raised.value.may_have_arrived


def test_a_private_authority_is_trusted_where_the_site_names_it(tmp_path: Path) -> None:
    """``CA_FILE`` vouches for the name that it was given for, and for no other one."""
    authority = Authority(tmp_path)
    trusting = replace(conf.application(), ca_file=str(authority.file))
    with keeping_server(authority.server_context()) as origin:
        assert exchange(trusting, Call("profile", "GET", origin)).status == 200
    with keeping_server(authority.server_context("elsewhere.example")) as origin:
        with pytest.raises(ServiceUnavailable) as raised:
            exchange(trusting, Call("profile", "GET", origin))
        assert not raised.value.may_have_arrived


def test_an_authority_whose_file_went_away(tmp_path: Path) -> None:
    """It is the setting that is wrong, and the error says so."""
    lost = replace(conf.application(), ca_file=str(tmp_path / "gone.pem"))
    with pytest.raises(ConfigurationError, match="CA_FILE"):
        exchange(lost, Call("profile", "GET", "https://127.0.0.1:9"))


def test_a_proxy_sees_a_tunnel_and_nothing_of_what_goes_through_it(tmp_path: Path) -> None:
    """TLS is between the site and the service; the proxy learns the host alone."""
    authority = Authority(tmp_path)
    with keeping_server(authority.server_context()) as origin, forward_proxy("site:word") as proxy:
        site = replace(conf.application(), ca_file=str(authority.file), proxy=proxy.address)
        for _ in range(2):
            call = Call("token", "POST", f"{origin}/token", form={"code": "secret"}, sent_once=True)
            assert exchange(site, call).status == 200
    host = origin.removeprefix("https://")
    assert proxy.asked == [f"CONNECT {host} HTTP/1.1"] * 2


def test_a_proxy_carries_plain_http_to_this_machine() -> None:
    """A sandbox behind a proxy is reached, too."""
    with keeping_server() as origin, forward_proxy() as proxy:
        site = replace(conf.application(), proxy=proxy.address)
        assert exchange(site, Call("profile", "GET", f"{origin}/me")).status == 200
    assert proxy.asked == [f"GET {origin}/me HTTP/1.1"]


def test_a_proxy_that_refuses_has_passed_nothing_on(tmp_path: Path) -> None:
    """A code that was not sent may be sent again."""
    authority = Authority(tmp_path)
    with keeping_server(authority.server_context()) as origin, forward_proxy("site:word") as proxy:
        address = proxy.address.replace("word", "another")
        site = replace(conf.application(), ca_file=str(authority.file), proxy=address)
        with pytest.raises(ServiceUnavailable) as raised:
            exchange(site, Call("token", "POST", origin, form={"code": "x"}, sent_once=True))
    assert not raised.value.may_have_arrived


def test_a_silent_proxy_holds_nobody_up() -> None:
    """The wait for it is part of the call's seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        site = replace(conf.application(), proxy=address)
        call = Call("profile", "GET", "https://service.example", seconds=0.3)
        with pytest.raises(ServiceTimeout), at_most(1.0):
            exchange(site, call)


def test_a_silent_resolver_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call ends in time, and nothing was sent; many calls wait in one thread for one name."""
    asked: list[str] = []
    answering = threading.Event()

    def resolve(host: str, *_args: object, flags: int = 0, **_kwargs: object) -> list[object]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        asked.append(host)
        answering.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    for _ in range(2):
        call = Call("profile", "GET", "https://silent.example", seconds=0.3)
        with pytest.raises(ServiceTimeout) as raised, at_most(1.0):
            exchange(conf.application(), call)
        assert not raised.value.may_have_arrived
    answering.set()
    assert asked == ["silent.example"]


def test_dead_addresses_before_a_good_one_cost_a_moment_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next address of a name is tried after 250 ms, beside those that do not answer."""
    with keeping_server() as origin, silent_addresses(origin, 3) as silent:
        port = int(origin.rpartition(":")[2])
        resolve_to(monkeypatch, [*silent, "127.0.0.1"], port)
        call = Call("profile", "GET", f"http://localhost:{port}", seconds=3)
        with at_most(1.5):
            assert exchange(conf.application(), call).status == 200


def test_a_name_with_dead_addresses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together take no longer than the call may."""
    with keeping_server() as origin, silent_addresses(origin, 4) as silent:
        port = int(origin.rpartition(":")[2])
        resolve_to(monkeypatch, silent, port)
        call = Call("profile", "GET", f"http://localhost:{port}", seconds=0.6)
        with pytest.raises(ServiceTimeout) as raised, at_most(1.2):
            exchange(conf.application(), call)
        assert not raised.value.may_have_arrived


def test_an_address_that_refuses_is_followed_by_the_next_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits 250 ms for an address that has answered already."""
    with keeping_server() as origin:
        port = int(origin.rpartition(":")[2])
        resolve_to(monkeypatch, ["127.0.0.2", "255.255.255.255", "127.0.0.1"], port)
        with at_most(0.2):
            call = Call("profile", "GET", f"http://localhost:{port}")
            assert exchange(conf.application(), call).status == 200


def test_a_read_has_no_body_and_says_nothing_of_one() -> None:
    """A GET carries no ``Content-Length``: some servers refuse one."""
    with hostile_service() as service:
        exchange(conf.application(), Call("profile", "GET", f"{service.origin}/users/me/profile"))
        [(_, _, sent)] = service.requests
    assert b"content-length" not in sent.lower()


# What people hang on httpx


def test_hooks_of_the_client_see_each_call() -> None:
    """``http_client`` is an ``httpx.Client``: its hooks see the request and read the answer."""
    client = http_client(conf.application())
    seen: list[tuple[str, bytes]] = []

    def look(response: httpx.Response) -> None:
        seen.append((response.request.method, response.read()))

    client.event_hooks["response"].append(look)
    try:
        with keeping_server() as origin:
            port = connection_of(Call("profile", "GET", origin))
    finally:
        client.event_hooks["response"].remove(look)
    assert seen == [("GET", port)]


@pytest.mark.parametrize("using", ["httpx", "httpcore"])
def test_a_mocked_service_is_never_called(using: str) -> None:
    """respx answers in the service's place, whichever way it is built in."""
    with respx.mock(using=using) as mocked:
        mocked.get("https://service.example/me").respond(json={"success": True})
        answer = exchange(conf.application(), Call("me", "GET", "https://service.example/me"))
    assert answer.body == b'{"success":true}'


def test_what_wraps_the_transport_of_httpx_sees_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing wraps ``httpx.HTTPTransport.handle_request``, which every call goes through."""
    seen: list[str] = []
    original = httpx.HTTPTransport.handle_request

    def traced(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        return original(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", traced)
    with keeping_server() as origin:
        connection_of(Call("profile", "GET", origin))
    assert seen == ["GET"]


def test_a_hook_that_reads_the_answer_reads_no_more_than_the_call_takes() -> None:
    """The bound is below the hooks: none of them is handed an endless body."""
    client = http_client(conf.application())
    look = httpx.Response.read
    client.event_hooks["response"].append(look)
    try:
        with hostile_service(answers={"me": huge}) as service:
            call = Call("me", "GET", f"{service.origin}/users/me/profile")
            with pytest.raises(AnswerTooLarge):
                exchange(conf.application(), call)
    finally:
        client.event_hooks["response"].remove(look)


# Steps


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@contextmanager
def silent_addresses(origin: str, number: int) -> Iterator[list[str]]:
    """Addresses of this machine that answer nothing at the port of ``origin``: queues are full."""
    port = int(origin.rpartition(":")[2])
    with ExitStack() as stack:
        addresses = [f"127.0.0.{last}" for last in range(2, 2 + number)]
        for address in addresses:
            listener = stack.enter_context(socket.socket())
            listener.bind((address, port))
            listener.listen(0)
            stack.enter_context(socket.create_connection((address, port)))
        yield addresses


def resolve_to(monkeypatch: pytest.MonkeyPatch, addresses: list[str], port: int) -> None:
    """A resolver that knows these addresses of any name."""

    def resolve(_host: str, *_args: object, flags: int = 0, **_kwargs: object) -> list[object]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
