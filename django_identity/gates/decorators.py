"""Gates around functions: views, and the results of ``as_view``."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import iscoroutine
from typing import Any, NamedTuple, Protocol, TypeVar

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.views import View as ClassView

from django_identity.boundary import boundary
from django_identity.gates.closed import Closed, OnClosed, closed_response, keep_private
from django_identity.gates.gate import Gate, closed_to
from django_identity.lifecycle.standing.standing import share_memory

#: How the attributes begin by which a view names its gates.
ATTRIBUTE = "_identity_gate_"

#: A view, sync or async, or the handler of a class.
AnyView = Callable[..., Any]
View = TypeVar("View", bound=AnyView)


class Decorator(Protocol):
    """A decorated view keeps its type."""

    def __call__(self, view: View, /) -> View: ...


class ClosedGate(NamedTuple):
    """The first closed gate of a view, and why it is closed."""

    gate: Gate
    closed: Closed


def claim_required(
    *claims: str,
    on_closed: OnClosed = "redirect",
) -> Decorator:
    """Open a sync or async view only to people for whom all ``claims`` are proven."""
    return _decorator(Gate(*claims, on_closed=on_closed))


def kyc_level_required(
    level: str,
    *,
    on_closed: OnClosed = "redirect",
) -> Decorator:
    """Open a sync or async view only to people verified at ``level`` or above."""
    return _decorator(Gate(kyc_level=level, on_closed=on_closed))


def scope_required(
    scope: str,
    *,
    on_closed: OnClosed = "redirect",
) -> Decorator:
    """Open a sync or async view only to people who have allowed ``scope`` (of ``LATER_SCOPES``)."""
    return _decorator(Gate(scope=scope, on_closed=on_closed))


def recent_sign_in_required(
    minutes: float = 10,
    *,
    on_closed: OnClosed = "redirect",
) -> Decorator:
    """Open a view only to people who came back from the service lately in this session.

    The service may not ask them for a password again.
    """
    return _decorator(Gate(minutes=minutes, on_closed=on_closed))


def _decorator(gate: Gate) -> Decorator:
    """Under ``LoginRequiredMiddleware`` the gate answers in place of the middleware."""

    def decorate(view: View, /) -> View:
        is_class = isinstance(view, type) and issubclass(view, ClassView)
        if is_class or not callable(view):
            raise ImproperlyConfigured(
                "A gate stands around the function of one view. For a class use a mixin, and gate"
                " each view of an include().",
            )
        return login_not_required(
            guarded(view, [gate], is_async=iscoroutinefunction(view)),
        )

    return decorate


def guarded(
    view: View,
    gates: Sequence[Gate],
    *,
    is_async: bool,
) -> View:
    """``view`` behind ``gates``. Their answers are closed to caches.

    The map of gates reads them from its attributes. Each has a name of its own, because the
    attributes of several decorators are merged.
    """
    gated = _gated_async if is_async else _gated
    wrapper: Any = gated(view, gates)
    for gate in gates:
        vars(wrapper)[f"{ATTRIBUTE}{id(gate)}"] = gate
    return wrapper  # type: ignore[no-any-return]


def _gated(view: AnyView, gates: Sequence[Gate]) -> AnyView:
    @wraps(view)
    def gated(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
        found = _first_closed(gates, request, request.user)
        if found is not None:
            return _response(request, found)
        response = view(request, *args, **kwargs)
        if iscoroutine(response):
            response.close()
            raise ImproperlyConfigured(
                "a sync gate stands around an async view: use a mixin",
            )
        return keep_private(response)

    return gated


def _gated_async(view: AnyView, gates: Sequence[Gate]) -> AnyView:
    @wraps(view)
    async def gated(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
        found = await _afirst_closed(gates, request)
        if found is not None:
            return await sync_to_async(_response)(request, found)
        return keep_private(await view(request, *args, **kwargs))

    return gated


@boundary
def _first_closed(
    gates: Sequence[Gate],
    request: HttpRequest,
    user: object,
) -> ClosedGate | None:
    """The first gate that is closed to ``user`` or to ``request.user``.

    ``user`` is what the view sees. A middleware may have replaced only ``request.user``, or only
    ``request.auser``; a gate must hold for both.
    """
    _require_final_user(request)
    people = [user]
    if user != request.user:
        people.append(request.user)
    session = getattr(request, "session", None)
    for person in people:
        for gate in gates:
            closed = closed_to(gate, person, session=session)
            if closed is not None:
                return ClosedGate(gate, closed)

    if len(people) == 1 and user is not request.user:
        share_memory(user, request.user)
    return None


@boundary
async def _afirst_closed(
    gates: Sequence[Gate],
    request: HttpRequest,
) -> ClosedGate | None:
    user = await request.auser()
    return await sync_to_async(_first_closed)(gates, request, user)


def _require_final_user(request: HttpRequest) -> None:
    """Raise ``ImproperlyConfigured`` around a view of Django REST framework.

    It authenticates below the gate: a session would open the gate to the person of a token.
    """
    match = request.resolver_match
    # The framework's own request, around a handler, has the person whom the handler sees.
    if match is None or not isinstance(request, HttpRequest):
        return
    if hasattr(match.func, "cls"):
        raise ImproperlyConfigured(
            "a gate around a view of Django REST framework asks about the session, and not about"
            " the person whom the view sees: use permission_classes",
        )


@boundary
def _response(request: HttpRequest, found: ClosedGate) -> Any:
    return closed_response(request, found.closed, on_closed=found.gate.on_closed)
