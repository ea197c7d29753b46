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


def success(content: Mapping[str, Any], *, status: int = 200) -> JsonResponse:
    """Wrap ``content`` as ``{"success": true, "data": …}``."""
    return JsonResponse({"success": True, "data": content}, status=status)


def error(status: int, code: str, message: str) -> JsonResponse:
    """Build ``{"success": false, "error": {"code", "message"}}`` with the HTTP ``status``."""
    body = {"success": False, "error": {"code": code, "message": message}}
    return JsonResponse(body, status=status)


def environment_mismatch() -> JsonResponse:
    """Refuse a request that mixes live and test (spec: Credentials and environments)."""
    message = "Live credentials reach live users only, test credentials sandbox users only."
    return error(403, ENVIRONMENT_MISMATCH, message)


@csrf_exempt
def unknown_path(request: HttpRequest, path: str) -> HttpResponse:
    """Answer any API path that the service does not have."""
    return error(404, NOT_FOUND, "There is no such endpoint.")
