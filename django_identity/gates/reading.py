"""What stands before one view: decorators, mixins, permissions, and the gates of its handlers.

What cannot be read is named, and never passed over. Django REST framework's classes are known by
their names, because a site may run without it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any

from django_identity.gates import mixins
from django_identity.gates.decorators import ATTRIBUTE
from django_identity.gates.demands import Demand, Foreign, Not, every, some
from django_identity.gates.gate import Gate

FRAMEWORKS = ("django", "rest_framework")
PERMISSIONS = "rest_framework.permissions"
OUR_PERMISSIONS = "django_identity.api.permissions"
# A view that overrides one of these decides about its permissions by code of its own,
DECIDING = ("get_permissions", "check_permissions")
# and one that overrides one of these may leave them out.
CALLING = ("initial", "dispatch")


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that stands before a view, and what it answers if it is closed.

    ``method``: the one that it guards, in small letters, or an empty text for all of them.
    """

    demand: Demand
    closed: str
    method: str = ""
    gates: tuple[Gate, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands before a view.

    ``methods``: those that a class has handlers for; empty for a function. ``not_seen``: what may
    open or close the view, and could not be read.
    """

    guards: tuple[Guard, ...] = ()
    methods: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()

    def demand(self, method: str) -> Demand:
        """What a request of ``method`` meets; of an empty text, what every request meets."""
        return every(guard.demand for guard in self.guards if guard.method in ("", method))


def read(view: Callable[..., Any]) -> Reading:
    """What stands before ``view``, the outermost first. Raises what the site's own code raises."""
    reader = _Reader(view)
    guards = tuple(reader.guards())
    return Reading(guards, tuple(reader.handlers), tuple(dict.fromkeys(reader.not_seen)))


class _Reader:
    """Reads one view, and notes in ``not_seen`` what it cannot read."""

    def __init__(self, view: Callable[..., Any]) -> None:
        self.not_seen: list[str] = []
        self.layers = list(_layers_of(view))

    def guards(self) -> Iterator[Guard]:
        for gate in _gates_on(self.layers):
            yield self._guard(gate)
        if self.view_class is not None:
            yield from self._mixins(self.view_class)
            yield from self._permissions(self.view_class)
        for method, handler in self.handlers.items():
            for gate in _gates_on(_layers_of(handler)):
                yield self._guard(gate, method=method)

    def _guard(self, gate: Gate, *, method: str = "") -> Guard:
        if isinstance(gate.on_closed, str):
            answer: str = gate.on_closed
        else:
            answer = _short_name_of(gate.on_closed)
            # It may show what the view would have shown.
            self.not_seen.append(f"what {answer} answers at the closed gate")
        return Guard(every(gate.requirements), answer, method, (gate,))

    # The class behind a view. ``as_view`` leaves it on its function, with the arguments.

    @cached_property
    def view_class(self) -> type[Any] | None:
        found = self._of_as_view("view_class") or self._of_as_view("cls")
        return found if isinstance(found, type) else None

    @cached_property
    def initkwargs(self) -> dict[str, Any]:
        return self._of_as_view("view_initkwargs") or self._of_as_view("initkwargs") or {}

    @cached_property
    def handlers(self) -> dict[str, Any]:
        """Method -> the function of the class that answers it."""
        names = self.initkwargs.get(
            "http_method_names", getattr(self.view_class, "http_method_names", ())
        )
        # In a viewset of Django REST framework the route says which function answers.
        actions = self._of_as_view("actions") or {name: name for name in names}
        handlers: dict[str, Any] = {}
        for method in names:
            handler = getattr(self.view_class, actions.get(method, ""), None)
            # The frameworks' own answer to OPTIONS says which methods there are.
            is_plain = method == "options" and _is_of_framework(handler)
            if handler is not None and not is_plain:
                handlers[method] = handler
        return handlers

    def _of_as_view(self, name: str) -> Any:
        for layer in self.layers:
            value = _attributes(layer).get(name)
            if value is not None:
                return value
        return None

    def _mixins(self, view_class: type[Any]) -> Iterator[Guard]:
        self._note_dispatch(view_class)
        if issubclass(view_class, mixins.GateMixin):
            for gate in view_class(**self.initkwargs).gates():
                yield self._guard(gate)

    def _note_dispatch(self, view_class: type[Any]) -> None:
        """A ``dispatch`` of the site's own may answer before it calls a gate further down."""
        own: type[Any] | None = None
        for above in view_class.__mro__:
            dispatch = vars(above).get("dispatch")
            if dispatch is None:
                continue
            is_gate = above.__module__ == mixins.__name__ or any(_gates_on([dispatch]))
            if is_gate and own is not None:
                self.not_seen.append(f"whether {_name_of(own)}.dispatch() calls the gates below it")
                return
            if not is_gate and not _is_of_framework(dispatch):
                own = above

    # Permissions of Django REST framework

    def _permissions(self, view_class: type[Any]) -> Iterator[Guard]:
        for name in DECIDING:
            owner = _owner_of(view_class, name)
            if owner is not None and not _is_of_framework(owner):
                self.not_seen.append(f"which permissions {_name_of(owner)}.{name}() asks for")
                return
        classes = getattr(view_class, "permission_classes", ())
        for permission in self.initkwargs.get("permission_classes", classes):
            gates: list[Gate] = []
            # As the framework does for each request: what is no class shows itself only so.
            demand = self._demand_of(permission(), gates)
            if gates:
                self._note_callers(view_class)
                yield Guard(demand, "forbid", gates=tuple(gates))

    def _note_callers(self, view_class: type[Any]) -> None:
        for name in CALLING:
            owner = _owner_of(view_class, name)
            if owner is not None and not _is_of_framework(vars(owner)[name]):
                self.not_seen.append(f"whether {_name_of(owner)}.{name}() asks the permissions")

    def _demand_of(self, permission: Any, gates: list[Gate]) -> Demand:
        """What the permission asks for. Its gates are added to ``gates``."""
        kind = type(permission)
        if kind.__module__ == PERMISSIONS and hasattr(permission, "op1"):
            operands = [permission.op1]
            if hasattr(permission, "op2"):
                operands.append(permission.op2)
            demands = [self._demand_of(operand, gates) for operand in operands]
            if kind.__name__ == "NOT":
                return Not(demands[0])
            return every(demands) if kind.__name__ == "AND" else some(demands)

        gate = getattr(permission, "gate", None)
        if isinstance(gate, Gate):
            gates.append(gate)
            owner = _owner_of(kind, "has_permission")
            # A subclass that asks in its own way may let anybody in.
            if owner is not None and owner.__module__ == OUR_PERMISSIONS:
                return every(gate.requirements)
        return Foreign(_name_of(kind))


def _layers_of(view: Any) -> Iterator[Any]:
    """``view``, then what it wraps, then what that wraps. A wrapper may be in a circle."""
    passed: set[int] = set()
    while view is not None and id(view) not in passed:
        yield view
        passed.add(id(view))
        view = _inside(view)


def _inside(layer: Any) -> Any:
    """What ``layer`` calls, as far as one can see."""
    if isinstance(layer, partial):
        return layer.func
    if isinstance(layer, MethodType):
        return layer.__func__
    wrapped = _attributes(layer).get("__wrapped__")
    if wrapped is not None or isinstance(layer, type):
        return wrapped
    if isinstance(layer, FunctionType):
        functions = list(_functions_in_closure(layer))
        return functions[0] if len(functions) == 1 else None
    call = type(layer).__call__
    return call if isinstance(call, FunctionType) else None


def _functions_in_closure(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            variable = cell.cell_contents
        except ValueError:  # it is not set yet
            continue
        if callable(variable) and not isinstance(variable, type):
            yield variable


def _gates_on(layers: Iterable[Any]) -> Iterator[Gate]:
    """The gates that are named by the attributes of the layers, each once."""
    names: set[str] = set()
    for layer in layers:
        # The innermost decorator has added its attribute first.
        for name, gate in reversed(_attributes(layer).items()):
            if name.startswith(ATTRIBUTE) and name not in names:
                names.add(name)
                yield gate


def _attributes(layer: Any) -> dict[str, Any]:
    """Never by ``getattr``, which some objects answer for any name."""
    try:
        return dict(vars(layer))
    except TypeError:
        return {}


def _owner_of(kind: type[Any], name: str) -> type[Any] | None:
    """The class that defines ``name`` for ``kind``."""
    for base in kind.__mro__:
        if name in vars(base):
            return base
    return None


def _is_of_framework(thing: Any) -> bool:
    package = str(getattr(thing, "__module__", "")).partition(".")[0]
    return package in FRAMEWORKS


def _name_of(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _short_name_of(function: Any) -> str:
    """Its own name, or that of its class. Its ``repr`` may have anything in it."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
