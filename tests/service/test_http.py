"""One bounded exchange: who shares a connection, what ends a call, whom TLS trusts."""

import gzip
import logging
import os
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest
import trustme

from django_identity import conf
from django_identity.exceptions import MalformedAnswer, ServiceError, ServiceUnavailable
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.http import Call, environment_problem, exchange
from tests import fake_service
from tests.fake_service import html, huge, reset, serving, silent
from tests.sandbox.receiver import until
from tests.service.environment import environment
from tests.service.servers import ForwardProxy, KeepingServer


def proving(authority, host="127.0.0.1"):
    """What a server needs that proves to be ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


def send(call):
    return exchange(conf.application(), call)


# Connections


def test_reads_share_a_connection_and_no_cookie():
    """A read goes over a connection that is open already; no answer's cookie comes along."""
    with closing(KeepingServer()) as server:
        call = Call("profile", server.origin)
        seen = [send(call).headers["x-cookie-seen"] for _ in range(2)]
        assert seen == ["none", "none"]
        assert len(set(server.callers)) == 1


@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
def test_a_child_process_opens_its_own_connections():
    """Parent and child never write into one connection."""
    with closing(KeepingServer()) as server:
        call = Call("profile", server.origin)
        send(call)
        child = os.fork()
        if child == 0:
            send(call)
            os._exit(0)
        os.waitpid(child, 0)
        send(call)
        mine, childs, mine_again = server.callers
    assert childs != mine == mine_again


def calls_at_once(server, count):
    """The statuses of so many reads, each of which gets a connection of its own at first."""
    server.answering.clear()
    arrived = len(server.callers) + count
    reads = [partial(send, Call("profile", server.origin)) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = [pool.submit(read) for read in reads]
        until(lambda: len(server.callers) >= arrived)
        server.answering.set()
    return [each.result().status for each in answers]


@pytest.mark.parametrize("kept", [1, 3])
def test_a_read_outlives_a_connection_that_the_service_has_ended(kept):
    """It is sent once more, on a new connection: others that were kept may have ended, too."""
    with closing(KeepingServer(most=1)) as server:
        for _ in range(4):
            assert calls_at_once(server, kept) == [200] * kept
        ended = [port for port in set(server.callers) if server.callers.count(port) > 1]
        assert len(ended) == 2 * kept


@pytest.mark.parametrize("content", [{"json": {"a": "b"}}, {}], ids=["POST", "GET"])
def test_a_read_is_sent_twice_at_most(content):
    """A service that hangs up each time has no answer."""
    with closing(KeepingServer(most=0)) as server:
        with pytest.raises(ServiceUnavailable) as raised:
            send(Call("profile", server.origin, **content))
        assert raised.value.may_have_arrived
        assert len(set(server.callers)) == len(server.callers) == 2
        with pytest.raises(ServiceUnavailable):
            send(Call("token", server.origin, sent_once=True, **content))
        assert len(server.callers) == 3


# Limits


def profile_call(service, **given):
    return Call("profile", f"{service.origin}/users/1/profile", seconds=0.3, **given)


@pytest.mark.parametrize(
    "slow",
    [silent, fake_service.dribble_body],
    ids=["silent", "dripping"],
)
def test_a_call_ends_in_time(service, slow):
    """A byte of the body now and then keeps no call alive beyond its seconds."""
    service.answers["profile"] = slow
    began = time.monotonic()
    with pytest.raises(ServiceUnavailable) as raised:
        send(profile_call(service))
    assert time.monotonic() - began < 20
    assert raised.value.may_have_arrived


def check_nothing_arrived(call: Call, network_error: str) -> None:
    """Whoever must not send twice may try again after this one."""
    with pytest.raises(ServiceUnavailable) as raised:
        send(call)
    assert not raised.value.may_have_arrived
    assert raised.value.network_error == network_error
    assert "another" not in repr(raised.value)


def test_a_refused_connection_says_that_nothing_arrived():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    check_nothing_arrived(Call("profile", origin), "ConnectionRefusedError")


GOOD = b'{"success": true, "data": {}}'
PACKED = fake_service.http(gzip.compress(GOOD), headers="Content-Encoding: gzip\r\n")


@pytest.mark.parametrize(
    ("given", "error", "calls"),
    [
        (huge, MalformedAnswer, 1),
        (PACKED, MalformedAnswer, 1),
        (html("503 Bad"), ServiceUnavailable, 1),
        (reset, ServiceUnavailable, 2),
        (fake_service.truncated, ServiceUnavailable, 2),
    ],
    ids=["huge", "gzip", "503", "reset", "truncated"],
)
def test_an_answer_that_is_not_read(service, given, error, calls):
    """256 KB are read, and never inflated. Only after a broken connection a read is sent again."""
    service.answers["profile"] = given
    with pytest.raises(error):
        ServiceClient(conf.application()).profile("1", access_token=Secret("at"))
    assert len(service.requests) == calls


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(service, status):
    """Code and secret never arrive at another host."""
    with serving() as elsewhere:
        service.answers["request"] = fake_service.redirect_to(elsewhere.origin, status)
        with pytest.raises(ServiceError):
            ServiceClient(conf.application()).redeem_connect_code("CNX-AB12-CD34", [])
        assert elsewhere.requests == []


def test_the_last_byte_that_is_allowed_is_read(service):
    service.answers["profile"] = fake_service.http(b" " * 1000)
    assert len(send(profile_call(service, largest=1000)).body) == 1000
    with pytest.raises(MalformedAnswer):
        send(profile_call(service, largest=999))


# The log


@pytest.mark.parametrize(
    "token",
    ["at-secret", "at-secret\r\nX-Forged: yes", "at-s\u00e9cret"],
)
def test_neither_log_nor_error_quotes_the_request(service, caplog, token):
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


@pytest.fixture
def authority(tmp_path):
    """The one that the environment names."""
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(file)
    with environment(SSL_CERT_FILE=str(file)):
        yield authority


def test_nothing_is_sent_to_a_host_without_a_trusted_certificate(authority):
    """``SSL_CERT_FILE`` vouches for the name that it was given for; nothing is sent to others."""
    with closing(KeepingServer(proving(authority))) as server:
        assert send(Call("profile", server.origin)).status == 200
    for other in (proving(authority, "service.example"), proving(trustme.CA())):
        with closing(KeepingServer(other)) as server:
            check_nothing_arrived(
                Call("profile", server.origin),
                "SSLCertVerificationError",
            )


def test_a_proxy_that_refuses_has_passed_nothing_on():
    """A code that was not sent may be sent again; the proxy's answer is shown nowhere."""
    call = Call("token", "https://service.example", form={"c": "x"}, sent_once=True)
    with closing(ForwardProxy("site:word")) as proxy:
        wrong = proxy.address.replace("word", "another")
        with environment(HTTPS_PROXY=wrong):
            check_nothing_arrived(call, "ProxyError")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("SSL_CERT_FILE", "/no/such/file", "FileNotFoundError"),
        ("SSL_CERT_FILE", __file__, "SSLError"),
        ("HTTPS_PROXY", "ftp://proxy.example", "ValueError"),
        ("HTTPS_PROXY", "a:b", "InvalidURL"),
        ("HTTPS_PROXY", "http://site:word@127.0.0.1:3128", ""),
    ],
)
def test_an_environment_that_cannot_work_is_said(name, value, problem):
    with environment(**{name: value}):
        assert environment_problem() == problem
