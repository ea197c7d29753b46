"""The envelope of the API's answers and errors, and the JSON bodies that it takes (spec: Resources,
Errors).
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox import switches
from django_identity.sandbox.errors import Invalid

INSUFFICIENT_SCOPE = "INSUFFICIENT_SCOPE"
ENVIRONMENT_MISMATCH = "ENVIRONMENT_MISMATCH"
USER_MISMATCH = "USER_MISMATCH"
UNAUTHORIZED = "UNAUTHORIZED"
METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
NOT_FOUND = "NOT_FOUND"
RATE_LIMITED = "RATE_LIMITED"
INVALID_REQUEST = "INVALID_REQUEST"

MISMATCH_MESSAGE = (
    "Live credentials reach live users only, test credentials sandbox users only."
)

Endpoint = Callable[..., HttpResponse]


class Refused(Exception):
    """The request is refused with an error of the specification. What was done stays done."""

    def __init__(self, status: int, code: str, message: str, **about: Any) -> None:
        super().__init__(code)
        self.answer = error(status, code, message, **about)


def endpoint(method: str) -> Callable[[Endpoint], Endpoint]:
    """Let an address of the API answer ``method`` alone, and refuse in the envelope.

    HEAD is answered as GET: the server leaves the body out (RFC 9110, section 9.3.2).
    """

    def decorate(view: Endpoint) -> Endpoint:
        @csrf_exempt
        @wraps(view)
        def answer(request: HttpRequest, **parts: str) -> HttpResponse:
            if request.method not in _answered(method):
                return method_not_allowed(method)
            try:
                return view(request, **parts)
            except Refused as refused:
                return refused.answer
            except Invalid as unusable:
                return error(400, INVALID_REQUEST, str(unusable))

        return answer

    return decorate


def _answered(method: str) -> tuple[str, ...]:
    """The methods that an address for ``method`` answers."""
    if method == "GET":
        return "GET", "HEAD"
    return (method,)


def success(content: Mapping[str, Any], *, status: int = 200) -> JsonResponse:
    """Wrap ``content`` as ``{"success": true, "data": …}``."""
    return JsonResponse({"success": True, "data": content}, status=status)


def error(
    status: int,
    code: str,
    message: str,
    *,
    challenge: str = "",
    **beside: object,
) -> JsonResponse:
    """Build ``{"success": false, "error": {"code", "message"}}`` with the HTTP ``status``.

    The message is optional; ``beside`` becomes top-level members, ``challenge`` the header
    ``WWW-Authenticate``.
    """
    described = {"code": code}
    if switches.current().optional_members:
        described["message"] = message
    response = JsonResponse(
        {"success": False, "error": described, **beside},
        status=status,
    )
    if challenge:
        response["WWW-Authenticate"] = challenge
    return response


def method_not_allowed(allowed: str) -> JsonResponse:
    """Refuse any method but the ``allowed`` one."""
    refusal = error(405, METHOD_NOT_ALLOWED, f"Use {allowed}.")
    refusal["Allow"] = ", ".join(_answered(allowed))
    return refusal


def environment_mismatch() -> Refused:
    """Refuse a request that mixes live and test (spec: Credentials and environments)."""
    return Refused(403, ENVIRONMENT_MISMATCH, MISMATCH_MESSAGE)


def http_address(name: str, url: object) -> str:
    """Return ``url``, which the member ``name`` gave, if it is an http or https address.

    Raises:
        Invalid: it is none, or has no host.
    """
    try:
        parts = urlsplit(str(url))
        is_usable = (
            parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        )
    except ValueError:
        is_usable = False
    if not is_usable or len(str(url).split()) != 1:
        raise Invalid(f"{name}: an address is like https://shop.example/webhooks.")
    return str(url)


@csrf_exempt
def unknown_path(request: HttpRequest, path: str) -> HttpResponse:
    """Answer any API path that the service does not have."""
    return error(404, NOT_FOUND, "There is no such endpoint.")


def _no_number(text: str) -> None:
    """Refuse NaN and Infinity, which Python's reader would take (RFC 8259, section 6)."""
    raise ValueError(f"{text} is no number.")


def members_of(request: HttpRequest, *, labelled: bool = True) -> dict[str, Any]:
    """Return the members of the JSON object in the body.

    Raises:
        Invalid: it is none, or none of a bearable size, or (``labelled``) is not called JSON.
    """
    if labelled and request.content_type != "application/json":
        raise Invalid("The Content-Type of the body is application/json.")
    try:
        text = request.body
        if not text and not labelled:
            text = b"{}"
        members = json.loads(text, parse_constant=_no_number)
        # Half a surrogate pair is no text that could be stored or sent.
        json.dumps(members, ensure_ascii=False).encode()
    except (
        ValueError,
        RecursionError,
        RequestDataTooBig,
        UnreadablePostError,
    ) as failed:
        raise Invalid("The body is not JSON.") from failed
    if not isinstance(members, dict):
        raise Invalid("The body is not a JSON object.")
    return members
