"""Error answers of the service: its envelope and OAuth's ``{"error": …}``, with any status.

A 429 raises ``RateLimited``:

- A re-fetch has failed, its run ends, and all re-fetches pause (``lifecycle.ground.runs``).
- A sign-in ends if nobody knows yet who came, or if the profile gets it. Else it goes on with
  closed gates (``identification``).
- A Connect code counts as spent (``connect.is_spent``).
- A person is told to wait as long as the service says, a minute at most.

A key set has no refusals: each answer but 200 is an outage (``ServiceClient.key_set``).
"""

import time
from collections.abc import Callable, Mapping
from functools import partial

from django.utils.http import parse_http_date_safe

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.service.http import Answer
from django_identity.service.members import safe_url
from django_identity.strict_json import JSONObject, NotStrictJSON, read_object

LONGEST_PAUSE = 3600.0
# The code of a missing proof of address.
POLICY_CODE = "poa_required"
# The codes of the spec, and those of RFC 6749 §5.2, in small letters. The spec shows no error of
# the token endpoint, so each code may come in either shape, in capitals or not.
# "connect_code_required" is a mistake of ours, so it has no class of its own.
BY_CODE: Mapping[str, Callable[..., exceptions.ServiceRefusal]] = {
    "environment_mismatch": exceptions.EnvironmentMismatch,
    "invalid_connect_code": exceptions.InvalidConnectCode,
    "connect_code_required": partial(
        exceptions.ServiceRefusal,
        code="connect_code_required",
    ),
    POLICY_CODE: exceptions.VerificationPolicyNotMet,
    "invalid_grant": exceptions.InvalidGrant,
    "token_inactive": exceptions.InvalidGrant,
    "invalid_client": exceptions.ClientRejected,
    "unauthorized_client": exceptions.ClientRejected,
}
# These endpoints take the application's credentials. The others take an access token.
OF_APPLICATION = ("connect", "verify_claims")


def members_of(application: Application, endpoint: str, answer: Answer) -> JSONObject:
    """The JSON object of a success response. Raises the ``ServiceError`` of any other answer.

    Only a well-formed error answer of the service is a refusal. A proxy's page, a framework's 404
    or an empty body tells nothing about a token or a person, so it counts as an outage.
    """
    if answer.status == 429:
        seconds = seconds_to_wait(answer.headers)
        raise exceptions.RateLimited("too many calls", endpoint=endpoint, pause=seconds)
    try:
        members = read_object(answer.body)
    except NotStrictJSON as error:
        raise exceptions.ServiceUnavailable.of_status(
            answer.status,
            f"({error})",
            endpoint=endpoint,
        ) from None

    has_failed = members.get("success") is False
    is_refusal = has_failed or bool(members.get("error"))
    if answer.status < 400 and not is_refusal:
        return members

    service_code = code_of(members)
    refusal = None
    if is_refusal:
        refusal = _refusal_of(endpoint, answer.status, members)
    if refusal is None:
        detail = exceptions.shaped_code(service_code)
        raise exceptions.ServiceUnavailable.of_status(
            answer.status,
            detail,
            endpoint=endpoint,
        )

    refused = refusal(
        endpoint=endpoint,
        service_code=service_code,
        status=answer.status,
    )
    if isinstance(refused, exceptions.VerificationPolicyNotMet):
        refused.kyc_url = safe_url(
            members.get("kyc_url"),
            environment=application.environment,
        )
    raise refused


def _refusal_of(
    endpoint: str,
    status: int,
    members: JSONObject,
) -> Callable[..., exceptions.ServiceRefusal] | None:
    """The refusal by the service's code, else by its status. None: unknown."""
    code = code_of(members).lower()
    refusal = BY_CODE.get(code)
    if refusal is exceptions.InvalidGrant and (endpoint != "token" or status >= 500):
        # Elsewhere it is about the access token, which a refresh may replace.
        refusal = None
    if refusal is not None:
        return refusal

    if status >= 500:
        return None
    if endpoint == "token":
        # The envelope tells it from a proxy's answer.
        if status == 401 and code == "unauthorized" and "success" in members:
            return exceptions.ClientRejected
        return None
    if endpoint == "connect" and _asks_for_verification(members):
        return exceptions.VerificationPolicyNotMet

    if status != 401:
        return exceptions.ServiceRefusal
    if endpoint in OF_APPLICATION:
        return exceptions.ClientRejected
    return exceptions.AccessTokenRejected


def _asks_for_verification(members: JSONObject) -> bool:
    """Whether the person must be verified first.

    The codes of the service's verification policy are unpublished. What such a refusal has beside
    its code shows it: ``kyc_required``, or the address where the person gets verified.
    """
    if members.get("kyc_required") is True:
        return True
    kyc_url = members.get("kyc_url")
    return isinstance(kyc_url, str) and kyc_url != ""


def code_of(body: JSONObject) -> str:
    """The service's code in an error answer, or an empty text."""
    code = body.get("error")
    if isinstance(code, dict):
        code = code.get("code")
    if not isinstance(code, str):
        return ""
    return code


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """The seconds of a ``Retry-After`` header (RFC 9110 §10.2.3); zero if it is missing."""
    retry_after = headers.get("retry-after", "")
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), LONGEST_PAUSE)
    date = parse_http_date_safe(retry_after) or 0
    seconds = date - time.time()
    return min(max(seconds, 0.0), LONGEST_PAUSE)
