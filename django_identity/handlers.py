"""``@on_event("kyc.verified")``: the site's own code for every event of a type.

What the package itself does with an event: ``lifecycle/said/effects.py``.

A handler gets the ``WebhookEvent`` in a task, in its own transaction, after the event was stored
and applied. If a handler raises an error, it is tried twelve times within a day. The error rolls
back only the handler's own changes, and other handlers go on. A handler must be idempotent: if the
process dies before the commit, the handler runs again.
"""

from collections.abc import Callable, Mapping
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, TypeVar

from django_identity.event_types import canonical
from django_identity.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_identity.models import WebhookEvent


Handler = Callable[["WebhookEvent"], object]
H = TypeVar("H", bound=Handler)

SUSPENDED = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)

_registry: dict[str, dict[str, Handler]] = {}


def on_event(event_type: str, *, name: str = "") -> Callable[[H], H]:
    """Register a handler for events of ``event_type``, which may be a type outside the spec.

    The event records the ``name`` of each handler that succeeded; the default is the function's
    path. Change a name only while all events are done: the handler would run again. Raises
    ``ConfigurationError`` if another handler of the type has the same name, because only one of the
    two would run, and for an async function, because nobody would await it.
    """

    # Below a bare ``@on_event`` it is the handler, which nobody would call.
    given: object = event_type
    if not given or not isinstance(given, str):
        raise ConfigurationError(
            f'on_event takes a type of event, as on_event("kyc.verified"), not {event_type!r}.',
        )

    def register(handler: H) -> H:
        path = name or _path_of(handler)
        # Its call would run nothing, and the event would count as handled.
        is_suspended = any(is_kind(handler) for is_kind in SUSPENDED)
        if is_suspended or not callable(handler):
            raise ConfigurationError(
                f"{path} must be a function that is not async, and without yield.",
            )
        registered = _registry.setdefault(canonical(event_type), {})
        if registered.setdefault(path, handler) is not handler:
            raise ConfigurationError(
                f"Two handlers of {event_type!r} are called {path!r}. "
                "Give one on_event(…, name=…).",
            )
        return handler

    return register


def _path_of(handler: Handler) -> str:
    """The module and the name of the function. Raises ``ConfigurationError`` if it has none."""
    own_name = getattr(handler, "__qualname__", None)
    if own_name is None:
        raise ConfigurationError(
            f"A {type(handler).__name__} has no name: on_event(…, name=…) gives it one.",
        )
    return f"{handler.__module__}.{own_name}"


def handlers_of(event_type: str) -> Mapping[str, Handler]:
    """The site's handlers for ``event_type`` by name, in the order of their registration."""
    return dict(_registry.get(event_type, {}))


def forget(name: str) -> None:
    """Unregister a handler from every type. For tests."""
    for registered in _registry.values():
        registered.pop(name, None)
