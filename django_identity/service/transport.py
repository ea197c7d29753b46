"""One bounded HTTP exchange. The only importer of httpx.

No redirect is followed, no cookie kept, no proxy taken from the environment. One deadline covers
the whole call, one size its answer. httpx's own log lines, which name full addresses, stay quiet.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application, is_loopback
from django_identity.exceptions import (
    AnswerTooLarge,
    MalformedAnswer,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
    UnexpectedRedirect,
)

LARGEST_ANSWER = 256 * 1024
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}

logger = logging.getLogger("django_identity.service")
_in_our_call: ContextVar[bool] = ContextVar("in_our_call", default=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``endpoint`` is its name in errors and logs; seconds and bytes are limits."""

    endpoint: str
    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    seconds: float = 10.0
    largest: int = LARGEST_ANSWER


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: any status but a redirect, and at most the allowed number of bytes."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@sensitive_variables()
def exchange(application: Application, call: Call) -> Answer:
    """Send ``call`` once and read its answer.

    Raises ``ServiceTimeout``, ``ServiceUnavailable``, ``UnexpectedRedirect``, ``AnswerTooLarge`` or
    ``MalformedAnswer``.
    """
    _refuse_plain_http(application, call)
    began = time.monotonic()
    watch = _Watch(began + call.seconds)
    try:
        with _quietly(), watch, _client(call.seconds) as client:
            answer = _exchanged(client, call, watch)
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
        if watch.is_over() or isinstance(error, httpx.TimeoutException):
            raise ServiceTimeout("no answer in time", endpoint=call.endpoint) from None
        # The name of the error says enough; the error itself holds the request and its secrets.
        detail = f"no answer ({type(error).__name__})"
        raise ServiceUnavailable(detail, endpoint=call.endpoint) from None
    milliseconds = (time.monotonic() - began) * 1000
    logger.debug("%s answered %s in %.0f ms", call.endpoint, answer.status, milliseconds)
    return answer


@sensitive_variables()
def _exchanged(client: httpx.Client, call: Call, watch: _Watch) -> Answer:
    request = client.build_request(
        call.method,
        call.url,
        headers={**HEADERS, **call.headers},
        data=call.form,
        extensions={"trace": watch.trace},
    )
    response = client.send(request, stream=True)
    try:
        if response.is_redirect or 300 <= response.status_code < 400:
            raise UnexpectedRedirect("a redirect", endpoint=call.endpoint)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise MalformedAnswer("an encoding nobody asked for", endpoint=call.endpoint)
        body = _body(response, call)
    finally:
        response.close()
    return Answer(response.status_code, dict(response.headers), body)


def _body(response: httpx.Response, call: Call) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > call.largest:
            raise AnswerTooLarge(f"over {call.largest} bytes", endpoint=call.endpoint)
    return bytes(body)


class _Watch:
    """Ends a call at its deadline, also while it reads headers that come a byte a second.

    httpx's time-outs count each read by itself; here the socket is shut down under the reader.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(deadline - time.monotonic(), self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._timer.cancel()

    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def trace(self, event: str, arguments: Mapping[str, Any]) -> None:
        """httpcore's trace hook: it hands over the stream as soon as there is one."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = arguments["return_value"].get_extra_info("socket")
            if self.is_over():
                self._end()

    def _end(self) -> None:
        if self._socket is None:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            logger.debug("the connection was gone already (%s)", type(error).__name__)


def _refuse_plain_http(application: Application, call: Call) -> None:
    parts = urlsplit(call.url)
    may_be_plain = application.environment != "live" and is_loopback(parts.hostname)
    if parts.scheme != "https" and not may_be_plain:
        raise ServiceError("plain http is for this machine alone", endpoint=call.endpoint)


def _client(seconds: float) -> httpx.Client:
    return httpx.Client(
        verify=_tls(), trust_env=False, follow_redirects=False, timeout=httpx.Timeout(seconds)
    )


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def _quietly() -> Iterator[None]:
    token = _in_our_call.set(True)
    try:
        yield
    finally:
        _in_our_call.reset(token)


def _not_ours(_record: logging.LogRecord) -> bool:
    return not _in_our_call.get()


# A site may use httpx too and want its log; only the lines of our own calls are dropped.
for _name in ("httpx", "httpcore.connection", "httpcore.http11"):
    logging.getLogger(_name).addFilter(_not_ours)
