"""Errors as problems of RFC 9457: the ``EXCEPTION_HANDLER`` of these views, and of a site's."""

from collections.abc import Iterator
from typing import Any

from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as rest_framework_handler

from django_identity import conf
from django_identity.exceptions import IdentityError, Recovery
from django_identity.texts import advice
from django_identity.views.problems import MEDIA_TYPE, problem_body

OF_GATES = ("missing", "recovery")
# Names of Django REST framework's that are no members of the body.
UNNAMED = ("", "detail", "non_field_errors")


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every refusal has one form, those of Django REST framework included."""
    if isinstance(error, IdentityError):
        return _of_ours(
            error, (context.get("kwargs") or {}).get("alias", conf.DEFAULT_ALIAS)
        )
    response = rest_framework_handler(error, context)
    if response is None:
        return None
    is_unknown = isinstance(
        error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed
    )
    told = {"recovery": Recovery.SIGN_IN_TO_LINK if is_unknown else Recovery.CONTACT}
    if isinstance(error, exceptions.PermissionDenied):
        # A gate's permission says what is missing, and what opens it.
        told |= {
            name: response.data[name] for name in OF_GATES if name in response.data
        }
    # If the body has no error, the last one says that it is invalid.
    found = [response.data, exceptions.ValidationError().detail]
    member, first = next(_errors_in(found))
    detail = str(first) if member in UNNAMED else f"{member}: {first}"
    response.data = problem_body(
        response.status_code, code=str(first.code), detail=detail, **told
    )
    response.content_type = MEDIA_TYPE
    return response


def _of_ours(error: IdentityError, alias: str) -> Response:
    """With ``kyc_url``, ``request_id`` and ``retry_after`` if they are known."""
    seconds = int(error.retry_after)
    known: dict[str, Any] = {
        "kyc_url": getattr(error, "kyc_url", ""),
        "request_id": error.request_id,
        "retry_after": seconds,
    }
    headers = {"Retry-After": str(seconds)} if seconds else {}
    application = conf.application(
        alias if alias in conf.aliases() else conf.DEFAULT_ALIAS
    )
    body = problem_body(
        error.http_status,
        code=error.code,
        detail=advice.words_of(error, None, application)[1],
        recovery=error.recovery,
        reference=error.reference,
        **{name: value for name, value in known.items() if value},
    )
    return Response(body, body["status"], headers=headers, content_type=MEDIA_TYPE)


def _errors_in(
    found: Any, member: str = ""
) -> Iterator[tuple[str, exceptions.ErrorDetail]]:
    """Each error of a body, after the name of its member."""
    if isinstance(found, dict):
        for name, below in found.items():
            yield from _errors_in(below, name)
    elif isinstance(found, list):
        for below in found:
            yield from _errors_in(below, member)
    else:
        yield member, found
