"""Faults: the list of those that were ordered, and the answers that they lead to.

A connection is broken inside the response's iterator: if it raises ``ConnectionAbortedError``, the
server closes the connection and sends nothing before the first byte. The list lives in the process.
"""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)

from django_identity.sandbox import envelope
from django_identity.sandbox.errors import Invalid

CONNECTION = "sandbox.connection"
LONGEST_DELAY = 3600
_TRUNCATED_JSON = '{"success": true, "data": {"id": '
GetResponse = Callable[[HttpRequest], HttpResponseBase]


class FaultKind(StrEnum):
    """What happens to a request."""

    DELAY = "delay"
    STATUS = "status"
    MALFORMED = "malformed"
    DROP = "drop"
    DROP_MIDWAY = "drop_midway"
    RATE_LIMIT = "rate_limit"


class FaultMoment(StrEnum):
    """Whether the fault strikes before or after the service has acted on the request."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One ordered fault.

    It applies to a request if those of ``endpoint`` and ``path`` that are not empty match.
    ``times``: how many requests; None: until it is cancelled.
    """

    kind: FaultKind
    endpoint: str = ""
    path: str = ""
    times: int | None = 1
    when: FaultMoment = FaultMoment.BEFORE
    seconds: float = 0.0
    status: int = 500
    body: str = ""
    headers: dict[str, Any] = field(default_factory=dict)
    retry_after: int = 1
    id: int = 0


_lock = threading.Lock()
_numbers = itertools.count(1)
_ordered: list[Fault] = []


def order(fault: Fault) -> Fault:
    """Add ``fault`` to the list and return it with its number.

    Raises:
        Invalid: one of its numbers is of no use.
    """
    if not 0 <= fault.seconds <= LONGEST_DELAY:
        raise Invalid(f"seconds must be from 0 to {LONGEST_DELAY}.")
    if not 100 <= fault.status <= 599:
        raise Invalid("status must be from 100 to 599.")
    if fault.times is not None and fault.times < 1:
        raise Invalid("times must be 1 or more, or null.")
    with _lock:
        _ordered.append(replace(fault, id=next(_numbers)))
        return _ordered[-1]


def ordered() -> list[dict[str, object]]:
    """Return the pending faults, as the control API shows them."""
    with _lock:
        return [asdict(fault) for fault in _ordered]


def cancel() -> None:
    """Forget all of them."""
    with _lock:
        _ordered.clear()


def take(request: HttpRequest, endpoint: str) -> Fault | None:
    """Return the oldest fault that applies to this request, and count one use."""
    with _lock:
        for place, fault in enumerate(_ordered):
            is_meant = fault.endpoint in ("", endpoint)
            if is_meant and request.path_info.startswith(fault.path):
                if fault.times == 1:
                    del _ordered[place]
                elif fault.times is not None:
                    _ordered[place] = replace(fault, times=fault.times - 1)
                return fault
    return None


def misbehave(
    fault: Fault,
    request: HttpRequest,
    get_response: GetResponse,
) -> HttpResponseBase:
    """Return the answer to ``request`` with ``fault`` applied."""
    connection = request.META[CONNECTION]
    answer: HttpResponseBase = HttpResponse()
    if fault.kind is FaultKind.DELAY and fault.when is FaultMoment.BEFORE:
        time.sleep(fault.seconds)
        return get_response(request)
    if fault.kind is FaultKind.DROP_MIDWAY or fault.when is FaultMoment.AFTER:
        answer = get_response(request)

    match fault.kind:
        case FaultKind.DELAY:
            time.sleep(fault.seconds)
            return answer
        case FaultKind.DROP_MIDWAY:
            return _half_of(answer, connection)
        case FaultKind.DROP:
            return StreamingHttpResponse(_nothing(connection))
        case FaultKind.RATE_LIMIT:
            limited = envelope.error(429, envelope.RATE_LIMITED, "Too many requests.")
            limited["Retry-After"] = str(fault.retry_after)
            return limited
        case FaultKind.MALFORMED:
            return _ordered_answer(fault, fault.body or _TRUNCATED_JSON, status=200)
        case FaultKind.STATUS:
            return _ordered_answer(fault, fault.body, status=fault.status)


def _ordered_answer(fault: Fault, body: str, *, status: int) -> HttpResponse:
    """Build an answer with the ordered body, status and headers; JSON by default."""
    response = HttpResponse(body, status=status, content_type="application/json")
    for name, value in fault.headers.items():
        response[name] = str(value)
    response.headers.setdefault("Content-Length", str(len(response.content)))
    return response


def _half_of(
    answer: HttpResponseBase,
    connection: socket.socket,
) -> StreamingHttpResponse:
    """Return the real answer's status and headers with half of its body; then break off."""
    body = getattr(answer, "content", b"")
    content = itertools.chain([body[: len(body) // 2]], _nothing(connection))
    response = StreamingHttpResponse(content, status=answer.status_code)
    for name, value in answer.items():
        response[name] = value
    response["Content-Length"] = str(len(body))
    return response


def _nothing(connection: socket.socket) -> Iterator[bytes]:
    """Break the connection instead of sending anything."""
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError
    yield b""
