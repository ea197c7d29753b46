"""What stands before one view: decorators, mixins, permissions, and the gates of its handlers.

Code of the site's own that is called before a gate may answer in its place, so it is named with the
gate. Django REST framework's classes are known by their names: a site may run without it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.views.generic.edit import ProcessFormView

from django_identity.gates import mixins
from django_identity.gates.closed import ANSWERS
from django_identity.gates.decorators import ATTRIBUTE, AnyView
from django_identity.gates.gate import Gate
from django_identity.instruments.gate_map.layers import (
    attributes_of,
    layers_of,
    own_code_of,
    own_in,
)

PERMISSIONS = "rest_framework.permissions"
OUR_PERMISSIONS = "django_identity.api.permissions"
MIXIN = ("as_view", "setup", "guarded", "gates", "declared")
HANDLERS = (
    "as_view",
    "setup",
    "dispatch",
    "initialize_request",
    "initial",
    "handle_exception",
    "finalize_response",
)
ASKED = (*HANDLERS, "check_permissions", "permission_denied")
CHOSEN = "get_permissions"


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that stands before a view.

    ``asks``: in words. ``closed``: what it answers if it is closed. ``method``: the one that it
    guards, in small letters, or an empty text for all. ``own_code``: the names of the site's own
    code that decides, too.
    """

    asks: str
    closed: str
    gates: tuple[Gate, ...] = ()
    method: str = ""
    own_code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands before a view. ``methods``: those that a class answers; empty for a function."""

    guards: tuple[Guard, ...] = ()
    methods: tuple[str, ...] = ()

    def before(self, method: str) -> "Reading":
        """What a request of ``method`` meets. An empty text: what every request meets."""
        guards = [guard for guard in self.guards if guard.method in ("", method)]
        return Reading(tuple(guards))

    @property
    def gates(self) -> list[Gate]:
        """Each gate before the view, the outermost first."""
        return [gate for guard in self.guards for gate in guard.gates]

    @property
    def own_code(self) -> str:
        """The site's own, which may answer before a gate or in its place."""
        codes = [code for guard in self.guards for code in guard.own_code]
        return ", ".join(dict.fromkeys(codes))

    @property
    def open_methods(self) -> list[str]:
        """The methods that everybody may use. An empty text: all those of a function."""
        methods = self.methods or ("",)
        return [method for method in methods if not self.before(method).guards]


class _AsView(NamedTuple):
    """What ``as_view`` has left on its function: the class, and the arguments.

    ``actions``: in a viewset of Django REST framework, the function that answers each method.
    ``own_code``: of the site's own, above and in the class's ``dispatch``.
    """

    view_class: type[Any]
    initkwargs: dict[str, Any]
    actions: dict[str, str]
    own_code: tuple[str, ...]

    def argument(self, name: str) -> Any:
        """What the call or the class says, or nothing."""
        return self.initkwargs.get(name, getattr(self.view_class, name, ()))

    def own(self, names: Iterable[str]) -> tuple[str, ...]:
        """The site's own code that is called before a handler, as far as it has these names."""
        bases = self.view_class.__mro__
        found = [
            code for name in names for base in bases for code in own_in(base, name)
        ]
        return (*self.own_code, *found)


def read(view: AnyView) -> Reading:
    """What stands before ``view``, the outermost first. Raises what the site's own code raises."""
    layers = list(layers_of(view))
    guards = list(_decorators(layers))
    as_view = _as_view_of(layers)
    if as_view is None:
        return Reading(tuple(guards))
    guards += _mixins(as_view)
    guards += _permissions(as_view)
    # ``api_view`` keeps them in a set.
    handlers = dict(sorted(_handlers(as_view)))
    before = as_view.own(HANDLERS)
    for method, handler in handlers.items():
        gates = _decorators(list(layers_of(handler)), method=method, before=before)
        guards += gates
    return Reading(tuple(guards), tuple(handlers))


def _decorators(
    layers: list[Any],
    *,
    method: str = "",
    before: tuple[str, ...] = (),
) -> Iterator[Guard]:
    """The gates that the attributes of the layers name, each with the code above it."""
    gates: dict[str, tuple[Gate, tuple[str, ...]]] = {}
    own_code = before
    for layer in layers:
        own_code += own_code_of(layer)
        # The innermost decorator has added its attribute first.
        for name, gate in reversed(attributes_of(layer).items()):
            if name.startswith(ATTRIBUTE):
                # The attribute is copied to all layers above.
                gates[name] = gate, own_code
    for gate, above in gates.values():
        yield _guard(gate, method=method, own_code=above)


def _guard(gate: Gate, *, method: str = "", own_code: tuple[str, ...]) -> Guard:
    closed: Any = gate.on_closed
    if callable(closed):
        # Never the ``repr`` of a function, which may have anything in it.
        closed = getattr(closed, "__qualname__", type(closed).__qualname__)
    if closed not in ANSWERS:
        # It may show what is behind the gate.
        own_code += (f"{closed}()",)
    return Guard(str(gate), closed, (gate,), method=method, own_code=own_code)


# Classes


def _as_view_of(layers: Iterable[Any]) -> _AsView | None:
    found = None
    own_code: tuple[str, ...] = ()
    for layer in layers:
        own_code += own_code_of(layer)
        attributes = attributes_of(layer)
        view_class = attributes.get("view_class", attributes.get("cls"))
        if isinstance(view_class, type):
            initkwargs = attributes.get("view_initkwargs", attributes.get("initkwargs"))
            # The attributes are copied to all layers above.
            found = _AsView(
                view_class,
                initkwargs=initkwargs or {},
                actions=attributes.get("actions") or {},
                own_code=own_code,
            )
    return found


def _handlers(as_view: _AsView) -> Iterator[tuple[str, Any]]:
    """Each method, and the function of the class that answers it."""
    for method in as_view.argument("http_method_names"):
        name = method
        if as_view.actions:
            name = as_view.actions.get(method, "")
        handler = getattr(as_view.view_class, name, None)
        if handler is ProcessFormView.put:
            # All that it does is to call this one.
            handler = as_view.view_class.post
        if handler is None:
            continue
        # The frameworks' own answer to OPTIONS says which methods there are.
        if method == "options" and not own_code_of(handler):
            continue
        yield method, handler


def _mixins(as_view: _AsView) -> Iterator[Guard]:
    """A ``dispatch`` of the site's own may answer before it calls a mixin further down."""
    view_class = as_view.view_class
    if not issubclass(view_class, mixins.GateMixin):
        return
    own_code = as_view.own(MIXIN)
    above: tuple[str, ...] = ()
    for base in view_class.__mro__:
        if base.__module__ == mixins.__name__ and "dispatch" in vars(base):
            own_code += above
            above = ()
        above += own_in(base, "dispatch")
    for gate in view_class(**as_view.initkwargs).gates():
        yield _guard(gate, own_code=own_code)


# Permissions of Django REST framework


def _permissions(as_view: _AsView) -> Iterator[Guard]:
    chosen = as_view.own([CHOSEN])
    if chosen != as_view.own_code:
        yield Guard("", "forbid", own_code=chosen)
        return
    own_code = as_view.own(ASKED)
    for permission in as_view.argument("permission_classes"):
        gates: list[Gate] = []
        codes: list[str] = []
        # As the framework does for each request: what is no class shows itself only so.
        asks = _words_of(permission(), gates, codes)
        if gates:
            codes = [*own_code, *codes]
            yield Guard(asks, "forbid", tuple(gates), own_code=tuple(codes))


def _words_of(permission: Any, gates: list[Gate], codes: list[str]) -> str:
    """What the permission asks for. Its gates, and the site's own code in it, are added."""
    kind = type(permission)
    if kind.__module__ == PERMISSIONS and hasattr(permission, "op1"):
        operands = [permission.op1]
        if hasattr(permission, "op2"):
            operands.append(permission.op2)
        words = [_words_of(operand, gates, codes) for operand in operands]
        if kind.__name__ == "NOT":
            return f"~{words[0]}"
        sign = " & " if kind.__name__ == "AND" else " | "
        return f"({sign.join(words)})"

    gate = getattr(permission, "gate", None)
    if not isinstance(gate, Gate):
        return kind.__qualname__
    gates.append(gate)
    # A subclass that asks in its own way may let anybody in.
    owner = next(base for base in kind.__mro__ if "has_permission" in vars(base))
    if owner.__module__ != OUR_PERMISSIONS:
        codes.append(f"{owner.__qualname__}.has_permission()")
    return str(gate)
