"""The log of received requests, for tests.

A secret is stored only as the start of its SHA-256, which is enough to see that the same refresh
token was sent twice. Requests to the control API and to the console
are not logged.
"""

import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponseBase

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.instruments.fault_injection import endpoint_name, is_of_service
from django_identity.sandbox.server import json_body, own_process

KEPT_REQUESTS = 10_000
_SECRET_FIELDS = ("code", "refresh_token", "code_verifier", "client_secret")
_CONNECT_FIELDS = ("scopes", "callback_url", "infra_user_id")

logger = logging.getLogger("django_identity.sandbox.requests")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request. If no answer was sent, ``status`` is None and ``fault`` says why."""

    method: str
    path: str
    endpoint: str
    time: str
    received_at: str
    milliseconds: float
    status: int | None
    fault: str
    authorization: str
    form: Mapping[str, object]


_lock = threading.Lock()
_received: deque[ReceivedRequest] = deque(maxlen=KEPT_REQUESTS)
_count = 0


def received() -> list[dict[str, object]]:
    """Return the requests as the control API shows them, in the order they were answered."""
    with _lock:
        return [asdict(each) for each in _received]


def after(number: int) -> tuple[list[ReceivedRequest], int]:
    """Return the requests after the first ``number`` of this process, and how many there were."""
    with _lock:
        known = number if 0 <= number <= _count else 0
        kept = list(_received)
        return kept[max(0, len(kept) - (_count - known)) :], _count


def forget() -> None:
    """Empty the log."""
    with _lock:
        _received.clear()


def digest(secret: str) -> str:
    """Return the digest that replaces a secret in the log."""
    return "sha256:" + hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()[:16]


class RequestLogMiddleware:
    """Logs every request with the status of its answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        own_process.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, then log it."""
        global _count
        if not is_of_service(request):
            return self.get_response(request)
        moment, received_at, started = clock.now(), datetime.now(UTC), time.monotonic()
        response = self.get_response(request)
        fault = getattr(response, "fault", "")
        entry = ReceivedRequest(
            method=request.method or "",
            path=request.path_info,
            endpoint=endpoint_name(request),
            time=moment.isoformat(),
            received_at=received_at.isoformat(),
            milliseconds=round((time.monotonic() - started) * 1000, 1),
            status=None if fault == "drop" else response.status_code,
            fault=fault,
            authorization=_masked_authorization(request.headers.get("Authorization", "")),
            form=_masked_form(request),
        )
        with _lock:
            _received.append(entry)
            _count += 1
        logger.debug("%s %s -> %s", entry.method, entry.path, entry.status)
        return response


def _masked_authorization(header: str) -> str:
    """Keep the scheme and the digest of the rest."""
    scheme, _space, secret = header.partition(" ")
    return f"{scheme} {digest(secret)}" if secret else scheme and digest(scheme)


def _masked_form(request: HttpRequest) -> Mapping[str, object]:
    """Keep the fields of a token or Connect request, the secret ones as digests."""
    match endpoint_name(request):
        case "token":
            return _masked_token_form(request)
        case "connect":
            return _masked_connect_form(json_body.members_of(request) or {})
    return {}


def _masked_connect_form(members: Mapping[str, object]) -> Mapping[str, object]:
    """Keep the members of a Connect request that the specification names."""
    kept = {name: members[name] for name in _CONNECT_FIELDS if name in members}
    if "connect_code" in members:
        kept["connect_code"] = digest(str(members["connect_code"]))
    return kept


def _masked_token_form(request: HttpRequest) -> Mapping[str, str]:
    """Keep the fields of a token request."""
    return {
        name: digest(value) if name in _SECRET_FIELDS else value
        for name, value in request.POST.items()
        if isinstance(value, str)
    }
