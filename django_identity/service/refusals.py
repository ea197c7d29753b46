"""Error answers of the service: its envelope and OAuth's ``{"error": …}``, with any status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from django_identity.conf import Application
from django_identity.exceptions import (
    AccessForbidden,
    AccessTokenRejected,
    ClientRejected,
    ConnectCodeRequired,
    EnvironmentMismatch,
    InvalidConnectCode,
    InvalidGrant,
    MalformedAnswer,
    RateLimited,
    ServiceError,
    ServiceRefusal,
    ServiceUnavailable,
    VerificationPolicyNotMet,
)
from django_identity.service.answers.members import safe_url
from django_identity.service.transport import Answer
from django_identity.strict_json import NotStrictJSON

LONGEST_PAUSE = 3600.0
POLICY_CODE = "POA_REQUIRED"
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
    "verify_claims": {401: ClientRejected},
}


def error_in(application: Application, endpoint: str, answer: Answer) -> ServiceError | None:
    """The error in an answer, or None for a success response.

    Only a well-formed error answer of the service is a refusal. A proxy's page or an empty body
    tells nothing about a token or a person, whatever its status, so it counts as an outage.
    """
    if answer.status == 429:
        seconds = pause(answer.headers)
        return RateLimited("too many calls", endpoint=endpoint, retry_after=seconds)
    try:
        members = answer.members
    except NotStrictJSON as error:
        if answer.status < 400:
            return MalformedAnswer(str(error), endpoint=endpoint)
        members = {}
    is_refusal = members.get("success") is False or members.get("error") is not None
    if answer.status < 400 and not is_refusal:
        return None
    kind = _kind(endpoint, answer.status, members)
    if not is_refusal or kind is None:
        return ServiceUnavailable(f"HTTP {answer.status}", endpoint=endpoint)
    about: dict[str, Any] = {
        "endpoint": endpoint,
        "service_code": code_of(members),
        "status": answer.status,
    }
    if kind is VerificationPolicyNotMet:
        kyc_url = safe_url(
            members.get("kyc_url"),
            environment=application.environment,
            plain_hosts=application.insecure_test_hosts,
        )
        return VerificationPolicyNotMet(**about, kyc_url=kyc_url)
    return kind(**about)


def _kind(endpoint: str, status: int, members: Mapping[str, Any]) -> type[ServiceRefusal] | None:
    """The class of the refusal, by its code, else by its status. None: it decides nothing."""
    kind = BY_CODE.get(code_of(members))
    if kind is InvalidGrant and status not in ENDS_A_GRANT:
        return None if status >= 500 else ServiceRefusal
    if kind is not None:
        return kind
    if status >= 500:
        return None
    if endpoint == "connect" and _asks_for_verification(members):
        return VerificationPolicyNotMet
    return BY_STATUS_OF.get(endpoint, BY_STATUS).get(status, ServiceRefusal)


def _asks_for_verification(members: Mapping[str, Any]) -> bool:
    """Whether the person lacks a verification. The service publishes no list of such codes."""
    return (
        members.get("kyc_required") is True
        or isinstance(members.get("kyc_url"), str)
        or code_of(members) == POLICY_CODE
    )


def of_callback(error: str) -> ServiceRefusal | None:
    """The exception for the ``error`` of a callback, if it is one that a site must act on."""
    kind = BY_CODE.get(error)
    is_known = kind in (ClientRejected, EnvironmentMismatch)
    return kind(endpoint="authorization", service_code=error) if kind and is_known else None


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
