"""What every control request goes through: who may ask, and how its JSON body is read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import Resolver404, resolve

from django_identity.sandbox import callers, envelope, guard
from django_identity.sandbox.fault_injection import CONTROL_PREFIX


class InvalidRequest(ValueError):
    """The body of a control request cannot be used; the message says why."""


class UnknownObject(LookupError):
    """The control request names something that does not exist."""


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON object of a control request, read with the types that are expected.

    ``is_local``: this machine asks; else somebody who has the token.
    """

    members: Mapping[str, Any]
    is_local: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return a string member."""
        value = self.members.get(name, default)
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string.")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean member; absent is false."""
        value = self.members.get(name, False)
        if not isinstance(value, bool):
            raise InvalidRequest(f"{name} must be true or false.")
        return value

    def number(self, name: str, default: float = 0) -> float:
        """Return a number member."""
        value = self.members.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{name} must be a number.")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a member that is a list of strings; absent is empty."""
        values = self.members.get(name, [])
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise InvalidRequest(f"{name} must be a list of strings.")
        return values

    def day(self, name: str, default: str) -> date:
        """Return a member that is a date, such as ``1990-01-31``."""
        try:
            return date.fromisoformat(self.text(name, default))
        except ValueError as error:
            raise InvalidRequest(f"{name} must be a date such as 1990-01-31.") from error

    def moment(self, name: str) -> datetime:
        """Return a member that is an ISO 8601 timestamp with its offset."""
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError as error:
            raise InvalidRequest(f"{name} must be like 2030-01-31T12:00:00Z.") from error
        if moment.tzinfo is None:
            raise InvalidRequest(f"{name} lacks its offset; end it with Z for UTC.")
        return moment


Action = Callable[..., object]

_FORBIDDEN = (
    "The control API answers this machine, by a loopback name and without a proxy, "
    "or whoever sends the portal session token as Bearer."
)


class ControlMiddleware:
    """Answers the control API, before anything else of the sandbox sees the request.

    This machine may ask, unless a web page in its browser does; others need the token.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        guard.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Let who may ask through to the control API, and everybody to the service."""
        if not request.path_info.startswith(CONTROL_PREFIX):
            return self.get_response(request)
        may_ask = callers.is_local(request) and not _is_of_a_page(request)
        if not may_ask and not callers.has_token(request):
            return envelope.error(403, "FORBIDDEN", _FORBIDDEN)
        try:
            found = resolve(request.path_info)
        except Resolver404:
            return envelope.error(404, envelope.NOT_FOUND, "There is no such control.")
        answer: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
        return answer


def control(**actions: Action) -> Callable[..., HttpResponse]:
    """Make a view out of one action per HTTP method.

    An action takes the ``Body`` and the captured parts of the path, and returns what is answered
    as JSON; ``InvalidRequest`` and ``UnknownObject`` become 400 and 404.
    """

    def view(request: HttpRequest, **parts: object) -> HttpResponse:
        action = actions.get(request.method or "")
        if action is None:
            message = f"Use {' or '.join(actions)}."
            return envelope.error(405, envelope.METHOD_NOT_ALLOWED, message)
        try:
            return JsonResponse(action(_read(request), **parts), safe=False)
        except UnknownObject as error:
            return envelope.error(404, envelope.NOT_FOUND, str(error))
        except InvalidRequest as error:
            return envelope.error(400, "INVALID_REQUEST", str(error))

    return view


def _is_of_a_page(request: HttpRequest) -> bool:
    """Return whether a web page that is open in a browser asks."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    return "Origin" in request.headers or site not in {"none", "same-origin"}


def _read(request: HttpRequest) -> Body:
    """Parse the body; an empty one is an empty object."""
    try:
        members = json.loads(request.body or b"{}")
    except ValueError as error:
        raise InvalidRequest("The body is not JSON.") from error
    if not isinstance(members, dict):
        raise InvalidRequest("The body is not a JSON object.")
    return Body(members, is_local=callers.is_local(request))
