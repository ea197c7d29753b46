"""Error answers of the service: its envelope and OAuth's ``{"error": …}``, with any status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from django_identity.exceptions import (
    AccessForbidden,
    AccessTokenRejected,
    ClientRejected,
    ConnectCodeRequired,
    EnvironmentMismatch,
    InvalidConnectCode,
    InvalidGrant,
    RateLimited,
    ServiceError,
    ServiceRefusal,
    ServiceUnavailable,
)

LONGEST_PAUSE = 3600.0
# RFC 6749 §5.2, and services that send errors with status 200.
ENDS_A_GRANT = (200, 400)
BY_CODE: Mapping[str, type[ServiceRefusal]] = {
    "ENVIRONMENT_MISMATCH": EnvironmentMismatch,
    "INVALID_CONNECT_CODE": InvalidConnectCode,
    "CONNECT_CODE_REQUIRED": ConnectCodeRequired,
    "invalid_grant": InvalidGrant,
    "invalid_client": ClientRejected,
    "unauthorized_client": ClientRejected,
}
BY_STATUS: Mapping[int, type[ServiceRefusal]] = {401: AccessTokenRejected, 403: AccessForbidden}
# These endpoints take the application's credentials or none. The others take an access token.
BY_STATUS_OF: Mapping[str, Mapping[int, type[ServiceRefusal]]] = {
    "token": {},
    "jwks": {},
    "connect": {401: ClientRejected},
}


def is_refusal(body: Mapping[str, Any]) -> bool:
    """Whether a well-formed answer, with any status, is an error."""
    return body.get("success") is False or body.get("error") is not None


def of(
    endpoint: str, status: int, headers: Mapping[str, str], body: Mapping[str, Any]
) -> ServiceError:
    """The exception for an error answer, chosen by its code, else by its status.

    Only a well-formed error answer of the service is a refusal. A proxy's page or an empty body
    tells nothing about a token or a person, whatever its status, so it counts as an outage.
    """
    if status == 429:
        return RateLimited("too many calls", endpoint=endpoint, retry_after=pause(headers))
    code = code_of(body)
    kind = BY_CODE.get(code)
    if kind is InvalidGrant and status not in ENDS_A_GRANT:
        kind = None if status >= 500 else ServiceRefusal
    if not is_refusal(body) or (kind is None and status >= 500):
        return ServiceUnavailable(f"HTTP {status}", endpoint=endpoint)
    by_status = BY_STATUS_OF.get(endpoint, BY_STATUS)
    kind = kind or by_status.get(status)
    return (kind or ServiceRefusal)(endpoint=endpoint, service_code=code, status=status)


def of_callback(error: str) -> ServiceRefusal | None:
    """The exception for the ``error`` of a callback, if it is one that a site must act on."""
    kind = BY_CODE.get(error)
    is_known = kind in (ClientRejected, EnvironmentMismatch)
    return kind(endpoint="authorization", service_code=error) if kind and is_known else None


def is_outage(status: int, body: bytes) -> bool:
    """Whether the answer is not the service's own: a 5xx, or a page where JSON should be."""
    return status >= 500 or not body.lstrip().startswith(b"{")


def code_of(body: Mapping[str, Any]) -> str:
    """The service's code in an error answer, or an empty text."""
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else error
    return code if isinstance(code, str) else ""


def pause(headers: Mapping[str, str]) -> float:
    """The seconds of a ``Retry-After`` header (RFC 9110 §10.2.3), or zero without the header."""
    retry_after = headers.get("retry-after", "")
    if retry_after.isascii() and retry_after.isdigit():
        # Nine digits exceed the longest pause already, and Python refuses to parse very many.
        return min(float(retry_after.lstrip("0")[:9] or 0), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((aware - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_PAUSE)
