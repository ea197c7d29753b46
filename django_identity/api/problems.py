"""Errors of the API as problems. ``beside``: further members that an endpoint adds."""

from typing import Any

from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.response import Response
from rest_framework.views import exception_handler

from django_identity import conf
from django_identity.exceptions import IdentityError, Recovery
from django_identity.telemetry import LogEvent, log_failure
from django_identity.views.problems import MEDIA_TYPE, problem_body


def problem(error: IdentityError, **beside: object) -> Response:
    """The response for an ``IdentityError``, with ``kyc_url`` and ``retry_after`` if known."""
    headers = {}
    if kyc_url := getattr(error, "kyc_url", ""):
        beside["kyc_url"] = kyc_url
    if seconds := int(error.retry_after):
        beside["retry_after"] = seconds
        headers["Retry-After"] = str(seconds)
    body = problem_body(
        error.http_status,
        code=error.code,
        detail=str(error.public_message),
        recovery=error.recovery,
        reference=error.reference,
        beside=beside,
    )
    return Response(body, body["status"], headers=headers, content_type=MEDIA_TYPE)


def as_problem(error: Exception, context: dict[str, Any], **beside: object) -> Response | None:
    """An error of Django REST framework in the same form. It is not logged: no reference."""
    if isinstance(error, IdentityError):
        alias = str(context["kwargs"].get("alias", conf.DEFAULT_ALIAS))
        log_failure(LogEvent.SIGN_IN_FAILED, error, application=alias)
        return problem(error, **beside)
    response = exception_handler(error, context)
    if response is None:
        return None
    detail = response.data.get("detail", "")
    signs_in = isinstance(error, NotAuthenticated | AuthenticationFailed)
    response.data = problem_body(
        response.status_code,
        code=getattr(detail, "code", "error"),
        detail=str(detail),
        recovery=Recovery.SIGN_IN_TO_LINK if signs_in else Recovery.CONTACT,
        beside=beside,
    )
    response.content_type = MEDIA_TYPE
    return response
