"""The log of received requests, for tests and for the console.

A secret is stored only as the start of its SHA-256, which is enough to see that the same refresh
token was sent twice. Requests to the control API and to the console are not logged.
"""

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from django_identity.sandbox import clock, envelope
from django_identity.sandbox.errors import Invalid

KEPT_REQUESTS = 10_000
_SECRET_FIELDS = {
    "code",
    "refresh_token",
    "code_verifier",
    "client_secret",
    "connect_code",
}

logger = logging.getLogger("django_identity.sandbox.requests")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request. If no answer was sent, ``status`` is None and ``fault`` says why.

    ``user_id`` and ``client_id``: whom it concerned, as far as the service found out.
    """

    method: str
    path: str
    endpoint: str
    time: str
    milliseconds: float
    status: int | None
    fault: str
    authorization: str
    form: Mapping[str, object]
    user_id: str
    client_id: str


_lock = threading.Lock()
_received: deque[ReceivedRequest] = deque(maxlen=KEPT_REQUESTS)


def received() -> list[dict[str, object]]:
    """Return the requests as the control API shows them, in the order they were answered."""
    return list(map(asdict, newest(KEPT_REQUESTS)))


def newest(count: int) -> list[ReceivedRequest]:
    """Return the last ``count`` requests, the oldest first."""
    with _lock:
        return list(_received)[-count:]


def forget() -> None:
    """Empty the log."""
    with _lock:
        _received.clear()


def note(request: HttpRequest, user: Any, client: Any) -> None:
    """Remember whom ``request`` concerns, for its line in the log."""
    request.META["sandbox.concerns"] = (getattr(user, "subject", ""), client.client_id)


def add(
    request: HttpRequest, response: HttpResponseBase, endpoint: str, started: datetime
) -> None:
    """Log a request with the status of its answer."""
    now = datetime.now(UTC)
    fault = getattr(response, "fault", "")
    signed_in = getattr(getattr(request, "user", None), "subject", "")
    user_id, client_id = request.META.get("sandbox.concerns", (signed_in, ""))

    entry = ReceivedRequest(
        method=request.method or "",
        path=request.path_info,
        endpoint=endpoint,
        time=(started + clock.offset()).isoformat(),
        milliseconds=round((now - started).total_seconds() * 1000, 1),
        status=None if fault == "drop" else response.status_code,
        fault=fault,
        authorization=_masked_authorization(request.headers.get("Authorization", "")),
        form=_masked_form(request, endpoint),
        user_id=user_id,
        client_id=client_id,
    )
    with _lock:
        _received.append(entry)
    logger.debug("%s %s -> %s", entry.method, entry.path, entry.status)


def digest(secret: str) -> str:
    """Return the digest that replaces a secret in the log."""
    return (
        "sha256:"
        + hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()[:16]
    )


def _masked_authorization(header: str) -> str:
    """Keep the scheme and the digest of the rest."""
    scheme, _space, secret = header.partition(" ")
    if not scheme:
        return ""
    # A header of one word may be a bare secret.
    if not secret:
        return digest(scheme)
    return f"{scheme} {digest(secret)}"


def _masked_form(request: HttpRequest, endpoint: str) -> Mapping[str, object]:
    """Keep the fields of a token or Connect request, the secret ones as digests."""
    members: dict[str, object] = {}
    if endpoint == "token":
        members |= request.POST.dict()
    elif endpoint == "connect":
        with suppress(Invalid):
            members |= envelope.members_of(request, labelled=False)
    for name in _SECRET_FIELDS & members.keys():
        members[name] = digest(str(members[name]))
    return members
