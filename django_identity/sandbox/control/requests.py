"""What every control request goes through: who may ask, and how its JSON body is read."""

import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox import envelope


class InvalidRequest(ValueError):
    """The body of a control request cannot be used; the message says why."""


class UnknownObject(LookupError):
    """The control request names something that does not exist."""


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON object of a control request, read with the types that are expected."""

    members: Mapping[str, Any]

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


def control(**actions: Action) -> Callable[..., HttpResponse]:
    """Make a view out of one action per HTTP method.

    An action takes the ``Body`` and the captured parts of the path, and returns what is answered
    as JSON; ``InvalidRequest`` and ``UnknownObject`` become 400 and 404.
    """

    @csrf_exempt
    def view(request: HttpRequest, **parts: object) -> HttpResponse:
        if not _is_local(request):
            return envelope.error(403, "FORBIDDEN", "The control API answers this machine only.")
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


def _is_local(request: HttpRequest) -> bool:
    """Return whether this machine asks, and not a web page open in its browser."""
    remote = ipaddress.ip_address(request.META["REMOTE_ADDR"])
    return remote.is_loopback and "Origin" not in request.headers


def _read(request: HttpRequest) -> Body:
    """Parse the body; an empty one is an empty object."""
    try:
        members = json.loads(request.body or b"{}")
    except ValueError as error:
        raise InvalidRequest("The body is not JSON.") from error
    if not isinstance(members, dict):
        raise InvalidRequest("The body is not a JSON object.")
    return Body(members)
