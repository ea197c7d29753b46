"""Inject ordered faults: a middleware, and the answers that replace the real ones.

A connection is broken inside the response's iterator: if the response raises
``ConnectionAbortedError``, the server closes the connection. It sends nothing before the first
byte.
"""

import socket
import time
from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import Resolver404, resolve

from django_identity.sandbox.instruments import faults
from django_identity.sandbox.instruments.faults import Fault, FaultKind, FaultMoment
from django_identity.sandbox.server import envelope, own_process

CONTROL_PREFIX = "/sandbox/"
# What the console shows is not disturbed by what it orders.
_OWN_PREFIXES = ("/console/", "/static/")
CONNECTION = "sandbox.connection"
_TRUNCATED_JSON = '{"success": true, "data": {"id": '


class FaultMiddleware:
    """Applies the ordered faults to requests."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        own_process.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, or apply a fault."""
        if not is_of_service(request):
            return self.get_response(request)
        fault = faults.take(
            endpoint=endpoint_name(request), path=request.path_info, method=request.method or ""
        )
        if fault is None:
            return self.get_response(request)
        response = self._misbehave(fault, request)
        response.fault = fault.kind  # type: ignore[attr-defined]  # read by the request log
        return response

    def _misbehave(self, fault: Fault, request: HttpRequest) -> HttpResponseBase:
        """Return the answer with ``fault`` applied."""
        connection: socket.socket = request.META[CONNECTION]
        if fault.kind is FaultKind.DELAY and fault.moment is FaultMoment.BEFORE:
            time.sleep(fault.seconds)
            return self.get_response(request)
        keeps_answer = fault.kind in {FaultKind.SLOW, FaultKind.DROP_MIDWAY}
        if keeps_answer or fault.moment is FaultMoment.AFTER:
            answer = self.get_response(request)
        else:
            answer = HttpResponse()
        match fault.kind:
            case FaultKind.DELAY:
                time.sleep(fault.seconds)
                return answer
            case FaultKind.SLOW:
                return _reshaped(answer, lambda body: _byte_by_byte(body, fault.seconds))
            case FaultKind.DROP_MIDWAY:
                return _reshaped(answer, lambda body: _half_of(body, connection))
            case FaultKind.DROP:
                return StreamingHttpResponse(_nothing(connection))
            case FaultKind.RATE_LIMIT:
                return _rate_limited(fault)
            case FaultKind.MALFORMED:
                return _with_headers(fault, fault.body or _TRUNCATED_JSON, status=200)
            case FaultKind.STATUS:
                return _with_headers(fault, fault.body, status=fault.status)


def is_of_service(request: HttpRequest) -> bool:
    """Return whether the request is for the service and not for the sandbox's own console."""
    path = request.path_info
    return path != "/" and not path.startswith(_OWN_PREFIXES)


def endpoint_name(request: HttpRequest) -> str:
    """Return the URL name of the requested address, or an empty text."""
    try:
        return resolve(request.path_info).url_name or ""
    except Resolver404:
        return ""


def _rate_limited(fault: Fault) -> HttpResponse:
    """Build the 429 that asks to come back after ``retry_after`` seconds."""
    response = envelope.error(429, envelope.RATE_LIMITED, "Too many requests.")
    response["Retry-After"] = str(fault.retry_after)
    return response


def _with_headers(fault: Fault, body: str, *, status: int) -> HttpResponse:
    """Build an answer with the ordered body, status and headers; JSON by default."""
    response = HttpResponse(body, status=status, content_type="application/json")
    for name, value in fault.headers.items():
        response[name] = value
    response.headers.setdefault("Content-Length", str(len(response.content)))
    return response


def _reshaped(
    answer: HttpResponseBase, shape: Callable[[bytes], Iterator[bytes]]
) -> StreamingHttpResponse:
    """Return the real answer's status and headers with another way to send its body."""
    body = answer.content if isinstance(answer, HttpResponse) else b""
    response = StreamingHttpResponse(shape(body), status=answer.status_code)
    for name, value in answer.items():
        response[name] = value
    response["Content-Length"] = str(len(body))
    return response


def _byte_by_byte(body: bytes, seconds: float) -> Iterator[bytes]:
    """Yield one byte at a time with ``seconds`` between them."""
    for position in range(len(body)):
        yield body[position : position + 1]
        time.sleep(seconds)


def _half_of(body: bytes, connection: socket.socket) -> Iterator[bytes]:
    """Yield half of the body, then break the connection."""
    yield body[: len(body) // 2]
    yield from _nothing(connection)


def _nothing(connection: socket.socket) -> Iterator[bytes]:
    """Break the connection instead of sending anything."""
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError
    yield b""
