"""Error answers of the service: its envelope and OAuth's ``{"error": …}``, with any status."""

import time
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_http_date_safe

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.service.answers.members import safe_url
from django_identity.service.transport import Answer
from django_identity.strict_json import NotStrictJSON

LONGEST_PAUSE = 3600.0
POLICY_CODE = "POA_REQUIRED"
# RFC 6749 §5.2, and services that send errors with status 200.
ENDS_A_GRANT = (200, 400)
Refusal = type[exceptions.ServiceRefusal]
BY_CODE: Mapping[str, Refusal] = {
    "ENVIRONMENT_MISMATCH": exceptions.EnvironmentMismatch,
    "INVALID_CONNECT_CODE": exceptions.InvalidConnectCode,
    "CONNECT_CODE_REQUIRED": exceptions.ConnectCodeRequired,
    "invalid_grant": exceptions.InvalidGrant,
    "invalid_client": exceptions.ClientRejected,
    "unauthorized_client": exceptions.ClientRejected,
}
BY_STATUS: Mapping[int, Refusal] = {
    401: exceptions.AccessTokenRejected,
    403: exceptions.AccessForbidden,
}
# These endpoints take the application's credentials or none. The others take an access token.
BY_STATUS_OF: Mapping[str, Mapping[int, Refusal]] = {
    "token": {},
    "jwks": {},
    "connect": {401: exceptions.ClientRejected},
    "verify_claims": {401: exceptions.ClientRejected},
}


def error_in(
    application: Application, endpoint: str, answer: Answer
) -> exceptions.ServiceError | None:
    """The error in an answer, or None for a success response.

    Only a well-formed error answer of the service is a refusal. A proxy's page or an empty body
    tells nothing about a token or a person, whatever its status, so it counts as an outage.
    """
    if answer.status == 429:
        seconds = pause(answer.headers)
        return exceptions.RateLimited("too many calls", endpoint=endpoint, retry_after=seconds)
    try:
        members = answer.members
    except NotStrictJSON as error:
        if answer.status < 400:
            return exceptions.MalformedAnswer(str(error), endpoint=endpoint)
        members = {}
    is_refusal = members.get("success") is False or members.get("error") is not None
    if answer.status < 400 and not is_refusal:
        return None
    kind = _kind(endpoint, answer.status, members)
    if not is_refusal or kind is None:
        return exceptions.ServiceUnavailable(f"HTTP {answer.status}", endpoint=endpoint)
    refused = kind(endpoint=endpoint, service_code=code_of(members), status=answer.status)
    if isinstance(refused, exceptions.VerificationPolicyNotMet):
        refused.kyc_url = safe_url(
            members.get("kyc_url"),
            environment=application.environment,
            plain_hosts=application.insecure_test_hosts,
        )
    return refused


def _kind(endpoint: str, status: int, members: Mapping[str, Any]) -> Refusal | None:
    """The class of the refusal, by its code, else by its status. None: it decides nothing."""
    kind = BY_CODE.get(code_of(members))
    if kind is exceptions.InvalidGrant and status not in ENDS_A_GRANT:
        return None if status >= 500 else exceptions.ServiceRefusal
    if kind is not None:
        return kind
    if status >= 500:
        return None
    if endpoint == "connect" and _asks_for_verification(members):
        return exceptions.VerificationPolicyNotMet
    return BY_STATUS_OF.get(endpoint, BY_STATUS).get(status, exceptions.ServiceRefusal)


def _asks_for_verification(members: Mapping[str, Any]) -> bool:
    """Whether the person lacks a verification. The service publishes no list of such codes."""
    return (
        members.get("kyc_required") is True
        or isinstance(members.get("kyc_url"), str)
        or code_of(members) == POLICY_CODE
    )


def of_callback(error: str) -> exceptions.ServiceRefusal | None:
    """The exception for the ``error`` of a callback, if it is one that a site must act on."""
    kind = BY_CODE.get(error)
    is_known = kind in (exceptions.ClientRejected, exceptions.EnvironmentMismatch)
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
    date = parse_http_date_safe(retry_after) or 0
    return min(max(date - time.time(), 0.0), LONGEST_PAUSE)
