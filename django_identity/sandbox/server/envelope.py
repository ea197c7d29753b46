"""The response envelope of the API and its errors (spec: Resources, Errors)."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

INSUFFICIENT_SCOPE = "INSUFFICIENT_SCOPE"
ENVIRONMENT_MISMATCH = "ENVIRONMENT_MISMATCH"
USER_MISMATCH = "USER_MISMATCH"
UNAUTHORIZED = "UNAUTHORIZED"
METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
NOT_FOUND = "NOT_FOUND"
RATE_LIMITED = "RATE_LIMITED"
INVALID_REQUEST = "INVALID_REQUEST"

MISMATCH_MESSAGE = "Live credentials reach live users only, test credentials sandbox users only."


def success(content: Mapping[str, Any], *, status: int = 200) -> JsonResponse:
    """Wrap ``content`` as ``{"success": true, "data": …}``."""
    return JsonResponse({"success": True, "data": content}, status=status)


def error(status: int, code: str, message: str, **beside: object) -> JsonResponse:
    """Build ``{"success": false, "error": {"code", "message"}}`` with the HTTP ``status``.

    An empty ``message`` is left out; ``beside`` becomes top-level members.
    """
    content = {"code": code, "message": message} if message else {"code": code}
    return JsonResponse({"success": False, "error": content, **beside}, status=status)


def method_not_allowed(allowed: str) -> JsonResponse:
    """Refuse any method but the ``allowed`` one."""
    refusal = error(405, METHOD_NOT_ALLOWED, f"Use {allowed}.")
    refusal["Allow"] = allowed
    return refusal


def environment_mismatch() -> JsonResponse:
    """Refuse a request that mixes live and test (spec: Credentials and environments)."""
    return error(403, ENVIRONMENT_MISMATCH, MISMATCH_MESSAGE)


@csrf_exempt
def unknown_path(request: HttpRequest, path: str) -> HttpResponse:
    """Answer any API path that the service does not have."""
    return error(404, NOT_FOUND, "There is no such endpoint.")
