"""One HTTP request, with limits for time and size. Only this module imports httpx.

A proxy and a private certificate authority come from the environment (``HTTPS_PROXY``,
``SSL_CERT_FILE``). No redirect is followed and no cookie is kept. httpx's own log lines, which
contain addresses, are dropped.
"""

import logging
import math
import os
import time
from collections.abc import Mapping
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.logs import LogEvent, log
from django_identity.strict_json import JSONObject

LARGEST_ANSWER = 256 * 1024
# Seconds. A socket takes no negative time-out.
SHORTEST = 0.001
HEADERS = {
    "Accept": "application/json",
    # Nothing compressed, because a small body could inflate to a huge one.
    "Accept-Encoding": "identity",
    "User-Agent": "django-identity",
}
# One client makes the calls of all people. A cookie that came with one person's answer must not go
# out with another person's call.
NO_COOKIES = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
# A header that is not ASCII raises ``UnicodeError``.
FAILURES = (httpx.TransportError, httpx.InvalidURL, OSError, UnicodeError)
UNCONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
)
# The connection ended before the whole answer was there.
CONNECTION_ENDED = (
    httpx.ReadError,
    httpx.WriteError,
    httpx.CloseError,
    httpx.RemoteProtocolError,
)

_in_our_call: ContextVar[bool] = ContextVar("in_our_call", default=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One request: a POST with ``form`` or ``json``, else a GET.

    ``endpoint``: its name in errors and logs.

    ``sent_once``: the request spends a code or a token, or changes something. It gets a new
    connection: if a reused one breaks, nobody knows whether the service has read the request, and a
    code that comes twice ends the grant (RFC 6749 §4.1.2). Any other call is a read, which is sent
    once more if its connection breaks.

    ``seconds``: the longest time, if it is shorter than the application's ``TIMEOUT``.
    """

    endpoint: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    json: JSONObject | None = field(default=None, repr=False)
    seconds: float = math.inf
    largest: int = LARGEST_ANSWER
    sent_once: bool = False

    @property
    def has_content(self) -> bool:
        return self.form is not None or self.json is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """The response: any status except a redirect, and at most the allowed number of bytes."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def exchange(application: Application, call: Call) -> Answer:
    """Send ``call`` and read its answer.

    Raises ``ServiceUnavailable``, whose ``may_have_arrived`` says whether the service may have got
    the request, or ``MalformedAnswer``.
    """
    began = time.monotonic()
    ends_at = began + min(call.seconds, application.timeout)
    outside = _in_our_call.set(True)
    try:
        answer = _answer(call, ends_at=ends_at)
    except FAILURES as error:
        raise _no_answer(call, error) from None
    finally:
        _in_our_call.reset(outside)

    log(
        LogEvent.SERVICE_CALLED,
        level=logging.DEBUG,
        endpoint=call.endpoint,
        outcome=answer.status,
        milliseconds=round((time.monotonic() - began) * 1000),
    )
    return answer


def _answer(call: Call, *, ends_at: float) -> Answer:
    """The answer to ``call``. A read whose connection breaks is sent a second time.

    The service may end a kept connection at the moment at which a request goes out on it. Reads are
    idempotent, so they may be sent again (RFC 9112 §9.3.1). The second attempt gets a connection of
    its own, because the other kept ones may have ended, too.
    """
    if call.sent_once:
        return _exchange(call, ends_at=ends_at, is_new=True)
    try:
        return _exchange(call, ends_at=ends_at, is_new=False)
    except CONNECTION_ENDED:
        if time.monotonic() > ends_at:
            raise
    return _exchange(call, ends_at=ends_at, is_new=True)


def _exchange(call: Call, *, ends_at: float, is_new: bool) -> Answer:
    """Send ``call`` once. ``is_new``: over a new connection.

    Each step has the time-out of the whole call; the total is checked while the body arrives.
    """
    client = _client(os.getpid(), keeps=not is_new)
    request = client.build_request(
        "POST" if call.has_content else "GET",
        call.url,
        headers=call.headers,
        data=call.form,
        json=call.json,
        timeout=max(ends_at - time.monotonic(), SHORTEST),
    )
    with closing(client.send(request, stream=True)) as response:
        # It could lead the request, with its token or code, to anybody.
        if 300 <= response.status_code < 400:
            raise exceptions.ServiceUnavailable(
                "a redirect",
                endpoint=call.endpoint,
                code="unexpected_redirect",
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise exceptions.MalformedAnswer(
                "an unasked encoding",
                endpoint=call.endpoint,
            )
        body = _body(response, call, ends_at=ends_at)
        return Answer(response.status_code, response.headers, body)


def _body(response: httpx.Response, call: Call, *, ends_at: float) -> bytes:
    """The body, unless it is larger or comes more slowly than ``call`` allows."""
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > call.largest:
            detail = f"over {call.largest} bytes"
            raise exceptions.MalformedAnswer(detail, endpoint=call.endpoint)
        if time.monotonic() > ends_at:
            raise httpx.ReadTimeout("the body takes too long")
    return bytes(body)


def _no_answer(call: Call, error: Exception) -> exceptions.ServiceUnavailable:
    """The error for ``call``, with the class of ``error``: its text may quote the request."""
    name = type(_of_system(error) or error).__name__
    failed = exceptions.ServiceUnavailable(
        f"no answer ({name})",
        endpoint=call.endpoint,
    )
    if isinstance(error, httpx.TimeoutException):
        failed.code = "service_timeout"
    failed.network_error = name
    failed.may_have_arrived = not isinstance(error, (*UNCONNECTED, UnicodeError))
    return failed


def _of_system(error: BaseException | None) -> OSError | None:
    """The system's own error, behind those of httpx and httpcore."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def environment_problem() -> str:
    """Why no client can be built: the name of an error, without a path or a proxy's password."""
    try:
        _client(os.getpid(), keeps=True)
    except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
        return type(error).__name__
    return ""


@lru_cache(maxsize=2)
def _client(process: int, *, keeps: bool) -> httpx.Client:
    """The client of ``process``: a forked process needs connections of its own.

    ``keeps``: its connections stay open for the next calls.
    """
    limits = httpx.Limits(max_keepalive_connections=20 if keeps else 0)
    # No ``transport``: with one httpx would ignore the proxies of the environment.
    return httpx.Client(
        follow_redirects=False,
        cookies=NO_COOKIES,
        headers=HEADERS,
        limits=limits,
    )


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _in_our_call.get()


# httpx logs full addresses, which name the person, and httpcore logs headers. Drop only the lines
# of our own calls, because a site may use httpx too.
for _part in ("connection", "http11", "proxy", "socks"):
    logging.getLogger(f"httpcore.{_part}").addFilter(_is_not_ours)
logging.getLogger("httpx").addFilter(_is_not_ours)
