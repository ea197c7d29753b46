"""Send a request that spends a Connect code: once, and a doubtful result counts as spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.exceptions import (
    ConnectOutcomeUnknown,
    MalformedAnswer,
    ServiceError,
    ServiceUnavailable,
    VerificationPolicyNotMet,
)
from django_identity.service import refusals
from django_identity.service.dispatch import send
from django_identity.service.messages import safe_url
from django_identity.service.transport import Answer, Call
from django_identity.strict_json import NotStrictJSON, read_object

POLICY_CODE = "POA_REQUIRED"


@sensitive_variables()
def redeemed(application: Application, call: Call) -> dict[str, Any]:
    """Send ``call`` once and return the ``data`` of a success response.

    Raises ``ConnectOutcomeUnknown`` if the answer does not tell the result, a ``ServiceRefusal`` or
    ``RateLimited`` if the service refused. Other ``ServiceError`` have a false
    ``may_have_arrived``: nothing was sent, so the code is still valid.
    """
    answer = _answer(application, call)
    if answer.status == 429:
        raise refusals.of(call.endpoint, answer.status, answer.headers, {})
    body = _readable(call, answer)
    if answer.status >= 400 or refusals.is_refusal(body):
        raise _refusal(application, call, answer, body)
    opened = body.get("data")
    if answer.status != 200 or body.get("success") is not True:
        raise ConnectOutcomeUnknown("not the success envelope", endpoint=call.endpoint)
    if not isinstance(opened, dict):
        raise MalformedAnswer("data is not an object", endpoint=call.endpoint)
    return opened


@sensitive_variables()
def _answer(application: Application, call: Call) -> Answer:
    try:
        return send(application, call)
    except ServiceError as error:
        came_back = isinstance(error, MalformedAnswer)
        lost = isinstance(error, ServiceUnavailable) and error.may_have_arrived
        if came_back or lost:
            raise ConnectOutcomeUnknown(error.code, endpoint=call.endpoint) from None
        error.may_have_arrived = False
        raise


def _readable(call: Call, answer: Answer) -> dict[str, Any]:
    try:
        return read_object(answer.body)
    except NotStrictJSON as error:
        detail = f"HTTP {answer.status}, {error}"
        raise ConnectOutcomeUnknown(detail, endpoint=call.endpoint) from None


def _refusal(
    application: Application, call: Call, answer: Answer, body: Mapping[str, Any]
) -> ServiceError:
    error = refusals.of(call.endpoint, answer.status, answer.headers, body)
    if isinstance(error, ServiceUnavailable):
        return ConnectOutcomeUnknown(f"HTTP {answer.status}", endpoint=call.endpoint)
    is_known = refusals.code_of(body) in refusals.BY_CODE
    if is_known or not _asks_for_verification(body):
        return error
    return VerificationPolicyNotMet(
        endpoint=call.endpoint,
        service_code=refusals.code_of(body),
        status=answer.status,
        kyc_url=safe_url(body.get("kyc_url"), environment=application.environment),
    )


def _asks_for_verification(body: Mapping[str, Any]) -> bool:
    """Whether the person lacks a verification. The service publishes no list of such codes."""
    return (
        body.get("kyc_required") is True
        or isinstance(body.get("kyc_url"), str)
        or refusals.code_of(body) == POLICY_CODE
    )
