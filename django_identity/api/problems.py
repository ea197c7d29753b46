"""What the API answers a person who is refused: a problem of RFC 9457.

The members of its body: ``type``, ``title``, ``status``, ``code``, ``detail``, ``missing`` (the
claim, level or scope of a gate), ``recovery`` (what the person can do), ``reference``; if they are
known, ``kyc_url``, ``request_id`` and ``retry_after``. Status and ``code``:

- A closed gate (``api.permissions``) has 403, and ``claim_missing``, ``kyc_level_missing``,
  ``scope_missing`` or ``sign_in_not_recent``.
- A request of nobody has 401, ``not_authenticated`` and a challenge; in a site's view 403 with the
  same code if the first authentication class has no challenge. (A gate of a plain view has 401 and
  ``not_signed_in``: ``gates.closed``.)
- An error of ours has those of its row in ``exceptions.table``.
- Any other error of Django REST framework has its own.

A site may name ``exception_handler`` as its ``EXCEPTION_HANDLER``. Without it a closed gate of the
site's own views answers 403 with ``detail``, ``code``, ``missing`` and ``recovery`` alone.
"""

from collections.abc import Iterator
from typing import Any

from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as rest_framework_handler
from rest_framework.views import set_rollback

from django_identity.exceptions import IdentityError, Recovery
from django_identity.texts import advice
from django_identity.web.problems import MEDIA_TYPE, problem_body

# Django REST framework refuses somebody whom it does not know.
OF_NOBODY = (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)
# What a gate's permission adds: what is missing, and what opens it.
OF_GATES = ("missing", "recovery")
# Names of Django REST framework's that are no members of the body.
UNNAMED = ("", "detail", "non_field_errors")


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every refusal has one form, those of Django REST framework included."""
    response = _answer_to(error, context)
    # The page of a view that a browser opens is none.
    renderer = getattr(context.get("request"), "accepted_renderer", None)
    if response is not None and getattr(renderer, "format", "json") == "json":
        response.content_type = MEDIA_TYPE
    return response


def _answer_to(error: Exception, context: dict[str, Any]) -> Response | None:
    if not isinstance(error, IdentityError):
        return _of_framework(error, context)
    # As the framework does with its own: a site's view may have written something before.
    set_rollback()
    return _of_ours(error)


def _of_framework(error: Exception, context: dict[str, Any]) -> Response | None:
    response = rest_framework_handler(error, context)
    if response is None:
        return None
    # If the body has no error, the last one says that it is invalid.
    body: Any = response.data
    bodies = [body, exceptions.ValidationError().detail]
    member, first = next(_errors_in(bodies))
    members: dict[str, Any] = {
        "code": str(getattr(first, "code", "error")),
        "detail": str(first) if member in UNNAMED else f"{member}: {first}",
        "recovery": Recovery.CONTACT,
    }
    if isinstance(error, OF_NOBODY):
        members["recovery"] = Recovery.SIGN_IN_TO_LINK
    elif isinstance(error, exceptions.PermissionDenied) and isinstance(body, dict):
        for name in body.keys() & OF_GATES:
            members[name] = body[name]
    response.data = problem_body(response.status_code, **members)
    return response


def _of_ours(error: IdentityError) -> Response:
    """With ``kyc_url``, ``request_id`` and ``retry_after`` if they are known."""
    _title, sentence = advice.words_of(error, None)
    body = problem_body(
        error.http_status,
        code=error.code,
        detail=sentence,
        recovery=error.recovery,
        reference=error.reference,
    )
    seconds = int(error.retry_after)
    known = {
        "kyc_url": getattr(error, "kyc_url", ""),
        "request_id": error.request_id,
        "retry_after": seconds,
    }
    body.update({name: value for name, value in known.items() if value})
    response = Response(body, error.http_status)
    if seconds:
        response["Retry-After"] = str(seconds)
    return response


def _errors_in(
    body: Any,
    member: str = "",
) -> Iterator[tuple[str, exceptions.ErrorDetail]]:
    """Each error of a body, after the name of its member."""
    if isinstance(body, dict):
        for name, errors in body.items():
            yield from _errors_in(errors, name)
    elif isinstance(body, list):
        for errors in body:
            yield from _errors_in(errors, member)
    else:
        yield member, body
