"""One HTTP request with limits for time and size. Only this module imports httpx.

It uses an ``httpx.Client`` with a custom transport, so that event hooks, mocks and tracing of httpx
work. The client follows no redirect, stores no cookie and ignores proxies of the environment. One
deadline covers the whole call. httpx's own log lines are dropped.
"""

import logging
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx
from django.views.decorators.debug import sensitive_variables

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.conf.rules import may_be_plain
from django_identity.service.transport.deadline import seconds_left, within
from django_identity.service.transport.messages import Answer, Call
from django_identity.service.transport.network import BoundedNetwork

HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "django-identity",
}
CALL = "django_identity.call"
MOST_CONNECTIONS = 32
KEPT_SECONDS = 20.0
BEFORE_SENDING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
FAILURES = (httpx.TransportError, httpx.InvalidURL)

logger = logging.getLogger("django_identity.service")
_in_our_call: ContextVar[bool] = ContextVar("in_our_call", default=False)


@sensitive_variables()
def exchange(application: Application, call: Call) -> Answer:
    """Send ``call`` once and read its answer.

    Raises ``ServiceTimeout``, ``ServiceUnavailable``, ``UnexpectedRedirect``, ``AnswerTooLarge`` or
    ``MalformedAnswer``; ``may_have_arrived`` of the first two says whether the service may have got
    the request.
    """
    _refuse_plain_http(application, call)
    began = time.monotonic()
    try:
        with _quietly(), within(call.seconds):
            answer = _exchange(application, call)
    except _Unusable as unusable:
        raise unusable.error from None
    except (*FAILURES, OSError) as error:
        raise _no_answer(call, error) from None
    milliseconds = (time.monotonic() - began) * 1000
    fields = {"application": application.alias, "endpoint": call.endpoint,
              "outcome": answer.status, "milliseconds": round(milliseconds)}  # fmt: skip
    text = "%s answered %s in %.0f ms"
    logger.debug(text, call.endpoint, answer.status, milliseconds, extra=fields)
    return answer


def _no_answer(call: Call, cause: Exception) -> exceptions.ServiceUnavailable:
    """It has only a name of ``cause``, which itself contains the request with its secrets."""
    error: exceptions.ServiceUnavailable
    if isinstance(cause, httpx.TimeoutException):
        error = exceptions.ServiceTimeout("no answer in time", endpoint=call.endpoint)
    else:
        # Without a connection the text is the class of the system's own error.
        of_system = str(cause) if isinstance(cause, httpx.ConnectError) else ""
        name = exceptions.shaped_code(of_system) or type(cause).__name__
        error = exceptions.ServiceUnavailable(f"no answer ({name})", endpoint=call.endpoint)
        error.network_error = name
    error.may_have_arrived = not isinstance(cause, BEFORE_SENDING)
    return error


@sensitive_variables()
def _exchange(application: Application, call: Call) -> Answer:
    client = http_client(application)
    request = client.build_request(
        call.method,
        call.url,
        headers=dict(call.headers),
        data=call.form,
        json=call.json,
        timeout=seconds_left(),
        extensions={CALL: call},
    )
    response = client.send(request)
    if 300 <= response.status_code < 400:
        raise exceptions.UnexpectedRedirect("a redirect", endpoint=call.endpoint)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, response.content)


def _refuse_plain_http(application: Application, call: Call) -> None:
    parts = urlsplit(call.url)
    named = application.insecure_test_hosts
    is_allowed = may_be_plain(parts.hostname, application.environment, named)
    if parts.scheme != "https" and not is_allowed:
        refused = exceptions.ServiceError(
            "plain http is for this machine alone", endpoint=call.endpoint
        )
        refused.may_have_arrived = False
        raise refused


def http_client(application: Application) -> httpx.Client:
    """This process's client for ``application``. Sites may add event hooks to it."""
    return _client(application.ca_file, application.proxy)


@cache
def _client(ca_file: str | None, proxy: str | None) -> httpx.Client:
    return httpx.Client(
        transport=BoundedTransport(ca_file=ca_file, proxy=proxy),
        headers=HEADERS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        trust_env=False,
    )


class _Unusable(Exception):
    """Carries an error out of httpx, whose frames hold the answer: it is raised without them."""

    def __init__(self, error: exceptions.MalformedAnswer) -> None:
        super().__init__(error.code)
        self.error = error


class BoundedTransport(httpx.BaseTransport):
    """Reuses connections, but opens a new one for a request that must be sent only once.

    If a reused connection breaks, nobody knows whether the service has read the request.
    """

    def __init__(self, *, ca_file: str | None = None, proxy: str | None = None) -> None:
        try:
            trusted = (
                ssl.create_default_context(cafile=ca_file)
                if ca_file
                else httpx.create_ssl_context(trust_env=False)
            )
        except OSError as error:
            raise exceptions.ConfigurationError(f"CA_FILE: {type(error).__name__}") from None
        self._kept = _Connections(trusted, proxy, kept=MOST_CONNECTIONS)
        self._once = _Connections(trusted, proxy, kept=0)

    @sensitive_variables()
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        call: Call = request.extensions[CALL]
        connections = self._once if call.sent_once else self._kept
        response = connections.handle_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            response.close()
            detail = "an encoding nobody asked for"
            raise _Unusable(exceptions.MalformedAnswer(detail, endpoint=call.endpoint))
        response.stream = _BoundedBody(response.stream, call)
        return response

    def close(self) -> None:
        self._kept.close()
        self._once.close()


class _Connections(httpx.HTTPTransport):
    """httpx's transport with our network back end, for which httpx has no argument."""

    def __init__(self, trusted: ssl.SSLContext, proxy: str | None, *, kept: int) -> None:
        bounds: dict[str, Any] = {
            "ssl_context": trusted,
            "max_connections": MOST_CONNECTIONS,
            "max_keepalive_connections": kept,
            "keepalive_expiry": KEPT_SECONDS,
            "network_backend": BoundedNetwork(),
        }
        self._pool = _proxy_pool(proxy, bounds) if proxy else httpcore.ConnectionPool(**bounds)


@sensitive_variables()
def _proxy_pool(proxy: str, bounds: dict[str, Any]) -> httpcore.HTTPProxy:
    parsed = httpx.Proxy(proxy)
    return httpcore.HTTPProxy(str(parsed.url), proxy_auth=parsed.raw_auth, **bounds)


class _BoundedBody(httpx.SyncByteStream):
    """The bytes of an answer, limited to the allowed size for every reader."""

    def __init__(self, stream: Any, call: Call) -> None:
        self._stream = stream
        self._chunks = iter(stream)
        self._left = call.largest
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        return self

    # No generator: a generator's frame shows its variables in error reports.
    @sensitive_variables()
    def __next__(self) -> bytes:
        chunk: bytes = next(self._chunks)
        self._left -= len(chunk)
        if self._left < 0:
            detail = f"over {self._call.largest} bytes"
            raise _Unusable(exceptions.AnswerTooLarge(detail, endpoint=self._call.endpoint))
        return chunk

    def close(self) -> None:
        self._stream.close()


# A forked process must not use its parent's connections.
os.register_at_fork(after_in_child=_client.cache_clear)


@contextmanager
def _quietly() -> Iterator[None]:
    token = _in_our_call.set(True)
    try:
        yield
    finally:
        _in_our_call.reset(token)


def _not_ours(_record: logging.LogRecord) -> bool:
    return not _in_our_call.get()


# Drop only the log lines of our own calls, because a site may use httpx too.
for _name in ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy"):
    logging.getLogger(_name).addFilter(_not_ours)
