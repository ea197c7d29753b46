"""Error answers of the service: its envelope and OAuth's ``{"error": …}``, with any status."""

import time
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_http_date_safe

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.service.http import Answer
from django_identity.service.members import safe_url
from django_identity.strict_json import NotStrictJSON

LONGEST_PAUSE = 3600.0
POLICY_CODE = "POA_REQUIRED"
# RFC 6749 §5.2, and services that send errors with status 200.
ENDS_A_GRANT = (200, 400)
Refusal = type[exceptions.ServiceRefusal]
# The service's codes and statuses -> our codes.
BY_CODE: Mapping[str, str] = {
    "ENVIRONMENT_MISMATCH": "environment_mismatch",
    "INVALID_CONNECT_CODE": "invalid_connect_code",
    "CONNECT_CODE_REQUIRED": "connect_code_required",
    "invalid_grant": "invalid_grant",
    "invalid_client": "client_rejected",
    "unauthorized_client": "client_rejected",
}
BY_STATUS: Mapping[int, str] = {401: "access_token_rejected", 403: "access_forbidden"}
# These endpoints take the application's credentials. The others take an access token.
BY_STATUS_OF: Mapping[str, Mapping[int, str]] = {
    "connect": {401: "client_rejected"},
    "verify_claims": {401: "client_rejected"},
}
CLASSES: Mapping[str, Refusal] = {
    kind.code: kind for kind in exceptions.ServiceRefusal.__subclasses__()
}


def error_in(
    application: Application, endpoint: str, answer: Answer
) -> exceptions.ServiceError | None:
    """The error in an answer, or None for a success response.

    Only a well-formed error answer of the service is a refusal. A proxy's page, a framework's 404
    or an empty body tells nothing about a token or a person, so it counts as an outage.
    """
    if answer.status == 429:
        seconds = pause(answer.headers)
        return exceptions.RateLimited("too many calls", endpoint=endpoint, pause=seconds)
    try:
        members = answer.members
    except NotStrictJSON as error:
        said = f"HTTP {answer.status}, {error}"
        return exceptions.ServiceUnavailable(said, endpoint=endpoint)
    is_refusal = members.get("success") is False or members.get("error") is not None
    if answer.status < 400 and not is_refusal:
        return None
    service_code = code_of(members)
    code = _our_code(endpoint, answer.status, members) if is_refusal else None
    if code is None:
        said = f"HTTP {answer.status} {exceptions.shaped_code(service_code)}".strip()
        return exceptions.ServiceUnavailable(said, endpoint=endpoint)
    refused = _refusal(code, endpoint=endpoint, service_code=service_code, status=answer.status)
    if isinstance(refused, exceptions.VerificationPolicyNotMet):
        refused.kyc_url = safe_url(members.get("kyc_url"), environment=application.environment)
    return refused


def _our_code(endpoint: str, status: int, members: Mapping[str, Any]) -> str | None:
    """Our code of the refusal, by the service's code, else by its status. None: unknown."""
    code = BY_CODE.get(code_of(members))
    if code == "invalid_grant" and status not in ENDS_A_GRANT:
        return None
    if code is not None:
        return code
    if status >= 500 or endpoint == "token":
        return None
    if endpoint == "connect" and _asks_for_verification(members):
        return "verification_policy_not_met"
    return BY_STATUS_OF.get(endpoint, BY_STATUS).get(status, "service_refusal")


def _refusal(code: str, **answer: Any) -> exceptions.ServiceRefusal:
    return CLASSES.get(code, exceptions.ServiceRefusal)(code=code, **answer)


def _asks_for_verification(members: Mapping[str, Any]) -> bool:
    """Whether the person lacks a verification. The service publishes no list of such codes."""
    return (
        members.get("kyc_required") is True
        or isinstance(members.get("kyc_url"), str)
        or code_of(members) == POLICY_CODE
    )


def of_callback(error: str) -> exceptions.ServiceRefusal | None:
    """The exception for the ``error`` of a callback, if it is one that a site must act on."""
    code = BY_CODE.get(error, "")
    is_known = code in ("client_rejected", "environment_mismatch")
    return _refusal(code, endpoint="authorization", service_code=error) if is_known else None


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
    date = parse_http_date_safe(retry_after) or 0
    return min(max(date - time.time(), 0.0), LONGEST_PAUSE)
