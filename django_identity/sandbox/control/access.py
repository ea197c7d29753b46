"""Access to the control API, and its responses."""

import json
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import Resolver404, resolve

from django_identity.sandbox.control.body import Body, InvalidRequest, UnknownObject
from django_identity.sandbox.instruments.fault_injection import CONTROL_PREFIX
from django_identity.sandbox.server import callers, envelope, own_process

Action = Callable[..., object]

_FORBIDDEN = (
    "The control API answers this machine, by a loopback name and without a proxy, "
    "or whoever sends the portal session token as Bearer. With --control-token it answers that "
    "token alone."
)


class ControlMiddleware:
    """Handles the control API before the rest of the sandbox.

    ``callers.may_control`` decides who may use it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        own_process.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass allowed requests to the control API, and all other paths to the service."""
        if not request.path_info.startswith(CONTROL_PREFIX):
            return self.get_response(request)
        if not callers.may_control(request):
            return envelope.error(403, "FORBIDDEN", _FORBIDDEN)
        try:
            found = resolve(request.path_info)
        except Resolver404:
            return envelope.error(404, envelope.NOT_FOUND, "There is no such control.")
        answer: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
        return answer


def control(**actions: Action) -> Callable[..., HttpResponse]:
    """Make a view out of one action per HTTP method.

    An action takes the ``Body`` and the captured parts of the path, and returns the JSON answer.
    ``InvalidRequest`` and ``UnknownObject`` become 400 and 404.
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


def _read(request: HttpRequest) -> Body:
    """Parse the body; an empty one is an empty object."""
    try:
        members = json.loads(request.body or b"{}")
    except ValueError as error:
        raise InvalidRequest("The body is not JSON.") from error
    if not isinstance(members, dict):
        raise InvalidRequest("The body is not a JSON object.")
    return Body(members, is_local=callers.is_local(request))
