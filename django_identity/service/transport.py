"""One bounded HTTP exchange. The only importer of httpx.

No redirect is followed, no cookie kept, no proxy taken from the environment. One deadline covers
the whole call, one size its answer. The library's own log lines stay quiet.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx
from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.conf_rules import is_loopback
from django_identity.exceptions import (
    AnswerTooLarge,
    MalformedAnswer,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
    UnexpectedRedirect,
)
from django_identity.service.deadline import BoundedNetwork, seconds_left, within

LARGEST_ANSWER = 256 * 1024
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
MOST_CONNECTIONS = 32
KEPT_SECONDS = 20.0
BEFORE_SENDING = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
FAILURES = (httpcore.NetworkError, httpcore.ProtocolError, httpx.InvalidURL)

logger = logging.getLogger("django_identity.service")
_in_our_call: ContextVar[bool] = ContextVar("in_our_call", default=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``endpoint`` is its name in errors and logs; seconds and bytes are limits.

    ``sent_once``: what it carries is spent by the first try, so nothing may ever repeat it.
    """

    endpoint: str
    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    seconds: float = 10.0
    largest: int = LARGEST_ANSWER
    sent_once: bool = False


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
    ``MalformedAnswer``; ``may_have_arrived`` of the first two says whether the service may have got
    the request.
    """
    _refuse_plain_http(application, call)
    began = time.monotonic()
    try:
        with _quietly(), within(call.seconds):
            answer = _exchanged(call)
    except httpcore.TimeoutException as error:
        raise _no_answer(
            ServiceTimeout("no answer in time", endpoint=call.endpoint), error
        ) from None
    except (*FAILURES, OSError) as error:
        # The name of the error says enough; the error itself holds the request and its secrets.
        detail = f"no answer ({type(error).__name__})"
        raise _no_answer(ServiceUnavailable(detail, endpoint=call.endpoint), error) from None
    milliseconds = (time.monotonic() - began) * 1000
    logger.debug("%s answered %s in %.0f ms", call.endpoint, answer.status, milliseconds)
    return answer


def _no_answer(error: ServiceUnavailable, cause: Exception) -> ServiceUnavailable:
    error.may_have_arrived = not isinstance(cause, BEFORE_SENDING)
    return error


@sensitive_variables()
def _exchanged(call: Call) -> Answer:
    request = httpx.Request(
        call.method,
        call.url,
        headers={**HEADERS, **call.headers},
        data=call.form,
        json=call.json,
    )
    with _pool(call.sent_once).stream(
        request.method,
        httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        ),
        headers=request.headers.raw,
        content=request.read(),
        extensions={"timeout": {"pool": seconds_left()}},
    ) as response:
        headers = {
            name.decode("ascii", "replace").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        if 300 <= response.status < 400:
            raise UnexpectedRedirect("a redirect", endpoint=call.endpoint)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise MalformedAnswer("an encoding nobody asked for", endpoint=call.endpoint)
        return Answer(response.status, headers, _body(response, call))


def _body(response: httpcore.Response, call: Call) -> bytes:
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > call.largest:
            raise AnswerTooLarge(f"over {call.largest} bytes", endpoint=call.endpoint)
    return bytes(body)


def _refuse_plain_http(application: Application, call: Call) -> None:
    parts = urlsplit(call.url)
    may_be_plain = application.environment != "live" and is_loopback(parts.hostname)
    if parts.scheme != "https" and not may_be_plain:
        raise ServiceError("plain http is for this machine alone", endpoint=call.endpoint)


@cache
def _pool(sent_once: bool) -> httpcore.ConnectionPool:
    """This process's connections.

    What may be sent only once gets a new connection: on a kept one nobody can tell whether the
    service closed it before or after it read the request.
    """
    return httpcore.ConnectionPool(
        ssl_context=httpx.create_ssl_context(trust_env=False),
        max_connections=MOST_CONNECTIONS,
        max_keepalive_connections=0 if sent_once else MOST_CONNECTIONS,
        keepalive_expiry=KEPT_SECONDS,
        network_backend=BoundedNetwork(),
    )


# A child process must not write into its parent's connections.
os.register_at_fork(after_in_child=_pool.cache_clear)


@contextmanager
def _quietly() -> Iterator[None]:
    token = _in_our_call.set(True)
    try:
        yield
    finally:
        _in_our_call.reset(token)


def _not_ours(_record: logging.LogRecord) -> bool:
    return not _in_our_call.get()


# A site may use the library too and want its log; only the lines of our own calls are dropped.
for _name in ("httpcore.connection", "httpcore.http11"):
    logging.getLogger(_name).addFilter(_not_ours)
