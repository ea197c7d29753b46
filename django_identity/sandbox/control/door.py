"""The door of the control API: who comes in, what a body may hold, and how views are called.

A view takes the parts of its path, and the members of the request's body as keyword arguments.
``members`` is the table of what a body may hold: the view's keyword arguments, and those of what it
passes the rest to. A member without a default is required. A wrong, missing or unknown member is a
400 with its name.
"""

import inspect
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox import callers, envelope
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import Client, User

JSON = dict[str, Any] | list[Any]
View = Callable[..., Any]
V = TypeVar("V", bound=View)
Members = dict[str, Any]
#: Stand for a member that was not sent.
ABSENT: Any = object()
NO_MEMBERS: Members = {}
#: Of whole numbers; the database has no larger ones.
LARGEST = 2**31 - 1
_FORBIDDEN = (
    "The control API answers this machine, or who sends --control-token as Bearer."
)
_KINDS: dict[Any, tuple[Any, str]] = {
    str: (str, "a string"),
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    int | None: (int | None, "a whole number or null"),
    float: (int | float, "a number"),
    Members: (dict, "an object"),
    list[str]: (list, "a list of strings"),
}
_views: dict[str, dict[str, tuple[View, dict[str, inspect.Parameter]]]] = {}


def control(
    method: str,
    route: str,
    passed_to: View | type | None = None,
) -> Callable[[V], V]:
    """Register a view for a method and an address below /sandbox/."""

    def register(view: V) -> V:
        members: dict[str, inspect.Parameter] = {}
        if passed_to is not None:
            members |= inspect.signature(passed_to).parameters
        for name, parameter in inspect.signature(view).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                members[name] = parameter
        _views.setdefault(route, {})[method] = (view, members)
        return view

    return register


def urlpatterns() -> list[URLPattern]:
    """Return the addresses, the longest first: a user id may hold slashes."""
    routes = sorted(_views, key=len, reverse=True)
    return [path(route, _answer(_views[route])) for route in routes]


def _answer(views: Mapping[str, tuple[View, dict[str, inspect.Parameter]]]) -> Any:
    @csrf_exempt
    def answer(request: HttpRequest, **parts: object) -> HttpResponse:
        if not callers.may_control(request):
            return _refuse(403, "FORBIDDEN", _FORBIDDEN)

        method = request.method or ""
        if method == "HEAD":
            method = "GET"
        view, members = views.get(method, (None, {}))

        if view is None:
            return _refuse(
                405,
                envelope.METHOD_NOT_ALLOWED,
                f"Use {' or '.join(views)}.",
            )
        try:
            sent = _read(envelope.members_of(request, labelled=False), members)
            return JsonResponse(view(**parts, **sent), safe=False)
        except ObjectDoesNotExist as error:
            return _refuse(404, envelope.NOT_FOUND, str(error))
        except Invalid as error:
            return _refuse(400, envelope.INVALID_REQUEST, str(error))

    return answer


def _refuse(status: int, code: str, message: str) -> HttpResponse:
    """Refuse with a message, whatever the switches say of the service's errors."""
    content = {"success": False, "error": {"code": code, "message": message}}
    return JsonResponse(content, status=status)


def _read(sent: Members, members: Mapping[str, inspect.Parameter]) -> Members:
    """Return the members of a body if each is in the table, and none is missing."""
    for name in sent.keys() - members.keys():
        raise Invalid(f"{name} is no member; it takes {', '.join(members) or 'none'}.")
    for name, parameter in members.items():
        if parameter.default is parameter.empty and name not in sent:
            raise Invalid(f"{name} is missing.")
    return {
        name: _value(name, value, members[name].annotation)
        for name, value in sent.items()
    }


def _value(name: str, value: Any, kind: Any) -> Any:
    """Return ``value`` if it is of the annotated ``kind``."""
    if kind is Any:
        return value
    if kind in (date, datetime):
        return moment_of(name, value, kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = [member.value for member in kind]
        if value not in words:
            raise Invalid(f"{name} is one of {', '.join(words)}.")
        return kind(value)

    expected, description = _KINDS[kind]
    is_right = isinstance(value, expected)
    # True and False are whole numbers in Python.
    if isinstance(value, bool):
        is_right = kind is bool
    elif isinstance(value, int) and kind is not float:
        is_right = is_right and 0 <= value <= LARGEST
    elif isinstance(value, list):
        is_right = is_right and all(isinstance(text, str) for text in value)
    if not is_right:
        raise Invalid(f"{name} must be {description}.")
    return value


def moment_of(name: str, value: Any, kind: Any) -> Any:
    """Return a day, or a moment with its offset."""
    examples = {date: "1990-01-31", datetime: "2030-01-31T12:00:00Z"}
    try:
        moment = kind.fromisoformat(value)
        if kind is datetime and moment.tzinfo is None:
            raise ValueError("No offset.")
    except (TypeError, ValueError) as error:
        raise Invalid(f"{name} must be like {examples[kind]}.") from error
    return moment


def user_of(user_id: str) -> User:
    """Return the person, or raise ``ObjectDoesNotExist``."""
    user = User.objects.filter(subject=user_id).first()
    if user is None:
        raise ObjectDoesNotExist("There is no such user.")
    return user


def client_of(client_id: str) -> Client:
    """Return the credential set, or raise ``ObjectDoesNotExist``."""
    return Client.objects.select_related("registered").get(client_id=client_id)
