"""The log of received requests, for tests and for the console.

A secret is stored only as the start of its SHA-256, which is enough to see that the same refresh
token was sent twice. Of people's pages no content is stored; requests to the control API and to the
console are not logged.
"""

import hashlib
import itertools
import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.http import HttpRequest, HttpResponseBase

from django_identity.sandbox import clock, envelope
from django_identity.sandbox.errors import Invalid

KEPT_REQUESTS = 10_000
#: What the specification names. All else is a page of the sandbox.
OF_SITES = ("/api/", "/oauth2/", "/.well-known/")
_SECRET_FIELDS = {
    "access_token",
    "client_secret",
    "clientSecret",
    "code",
    "code_verifier",
    "connect_code",
    "content",
    "credential",
    "csrfmiddlewaretoken",
    "id_token",
    "password",
    "refresh_token",
    "state",
}
_SHOWN_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")

logger = logging.getLogger("django_identity.sandbox.requests")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request. If no answer was sent, ``status`` is None and ``fault`` says why.

    ``form``: the members that came; ``answer``: those of the answered JSON, or those that a
    redirect takes to an application; ``error``: the code in them. ``user_id`` and ``client_id``:
    whom it concerned, as far as the service found out.
    """

    number: int
    method: str
    path: str
    endpoint: str
    time: str
    milliseconds: float
    status: int | None
    fault: str
    authorization: str
    form: Mapping[str, object]
    headers: Mapping[str, str]
    answer: Mapping[str, object]
    error: str
    user_id: str
    client_id: str

    @property
    def is_of_site(self) -> bool:
        """Whether it asked for what the specification names, and not for a person's page."""
        return self.path.startswith(OF_SITES)


_lock = threading.Lock()
_numbers = itertools.count(1)
_received: deque[ReceivedRequest] = deque(maxlen=KEPT_REQUESTS)


def received() -> list[dict[str, object]]:
    """Return the requests as the control API shows them, in the order they were answered."""
    return list(map(asdict, newest(KEPT_REQUESTS)))


def newest(count: int) -> list[ReceivedRequest]:
    """Return the last ``count`` requests, the oldest first."""
    with _lock:
        return list(_received)[-count:]


def numbered(number: int) -> ReceivedRequest | None:
    """Return the request with this number, if it is still in the log."""
    for received in newest(KEPT_REQUESTS):
        if received.number == number:
            return received
    return None


def forget() -> None:
    """Empty the log."""
    with _lock:
        _received.clear()


def note(request: HttpRequest, user: Any, client: Any) -> None:
    """Remember whom ``request`` concerns, for its line in the log."""
    request.META["sandbox.concerns"] = (getattr(user, "subject", ""), client.client_id)


def add(
    request: HttpRequest,
    response: HttpResponseBase,
    endpoint: str,
    started: datetime,
) -> None:
    """Log a request with the status of its answer."""
    now = datetime.now(UTC)
    fault = getattr(response, "fault", "")
    signed_in = getattr(getattr(request, "user", None), "subject", "")
    user_id, client_id = request.META.get("sandbox.concerns", (signed_in, ""))
    answer = _answered(response)

    entry = ReceivedRequest(
        number=next(_numbers),
        method=request.method or "",
        path=request.path_info,
        endpoint=endpoint,
        time=(started + clock.offset()).isoformat(),
        milliseconds=round((now - started).total_seconds() * 1000, 1),
        status=None if fault == "drop" else response.status_code,
        fault=fault,
        authorization=_masked_authorization(request.headers.get("Authorization", "")),
        form=_sent(request),
        headers={name: response[name] for name in _SHOWN_HEADERS if name in response},
        answer=answer,
        error=_error_in(answer),
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


def _sent(request: HttpRequest) -> Any:
    """Return the members of a request to the service, the secret ones as digests."""
    if not request.path_info.startswith(OF_SITES):
        return {}
    query = request.GET.dict()
    if request.path_info.startswith("/oauth2/"):
        return _masked(query | request.POST.dict())
    with suppress(Invalid, RecursionError):
        return _masked(query | envelope.members_of(request, labelled=False))
    return _masked(query)


def _answered(response: HttpResponseBase) -> Any:
    """Return the members of an answer, the secret ones as digests."""
    location = response.get("Location", "")
    with suppress(ValueError, RecursionError):
        if "://" in location:
            return _masked(dict(parse_qsl(urlsplit(location).query)))
        members = _masked(json.loads(getattr(response, "content", b"")))
        if isinstance(members, dict):
            return members
    return {}


def _masked(content: Any, name: str = "") -> Any:
    """Return ``content``, of the member ``name``, with digests in place of secret members."""
    if name in _SECRET_FIELDS:
        return digest(str(content))
    # Its ``code`` is no secret.
    if isinstance(content, dict) and name != "error":
        return {key: _masked(value, key) for key, value in content.items()}
    if isinstance(content, list):
        return [_masked(value) for value in content]
    return content


def _error_in(answer: Mapping[str, Any]) -> str:
    """Return the code of an error, in the envelope or in OAuth's form."""
    match answer.get("error"):
        case {"code": str(code)} | str(code):
            return code
    return ""
