"""What stands before one view: decorators, mixins, permissions, and the gates of its handlers.

What the site's own code decides is a demand too, with the name of that code. Django REST
framework's classes are known by their names, because a site may run without it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from django.views.generic.edit import ProcessFormView

from django_identity.gates import mixins
from django_identity.gates.closed import ANSWERS
from django_identity.gates.decorators import ATTRIBUTE, AnyView
from django_identity.gates.demands import OPEN, Demand, Foreign, Not, every, some
from django_identity.gates.gate import Gate

FRAMEWORKS = ("django", "rest_framework")
PERMISSIONS = "rest_framework.permissions"
OUR_PERMISSIONS = "django_identity.api.permissions"


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that stands before a view, and what it answers if it is closed.

    ``method``: the one that it guards, in small letters, or an empty text for all of them.
    """

    demand: Demand
    closed: str
    method: str = ""
    gates: tuple[Gate, ...] = field(default=(), repr=False, compare=False)

    @property
    def passed_by(self) -> Demand:
        """What lets somebody see the view. A callable ``on_closed`` may show the same content."""
        if self.closed in ANSWERS:
            return self.demand
        return some([self.demand, Foreign(f"{self.closed}()")])


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands before a view. ``methods``: those that a class answers; empty for a function."""

    guards: tuple[Guard, ...] = ()
    methods: tuple[str, ...] = ()

    def demand(self, method: str) -> Demand:
        """What a request of ``method`` must meet. An empty text: what every request must meet."""
        return every(
            guard.passed_by for guard in self.guards if guard.method in ("", method)
        )

    @property
    def open_methods(self) -> list[str]:
        """The methods that everybody may use. An empty text: all those of a function."""
        methods = self.methods or ("",)
        return [method for method in methods if self.demand(method) == OPEN]


class _AsView(NamedTuple):
    """What ``as_view`` has left on its function: the class, and the arguments.

    ``actions``: in a viewset of Django REST framework, the function that answers each method.
    """

    view_class: type[Any]
    initkwargs: dict[str, Any]
    actions: dict[str, str]

    def argument(self, name: str) -> Any:
        """What the call or the class says, or nothing."""
        of_class = getattr(self.view_class, name, ())
        return self.initkwargs.get(name, of_class)


def read(view: AnyView) -> Reading:
    """What stands before ``view``, the outermost first. Raises what the site's own code raises."""
    layers = list(_layers_of(view))
    guards = [_guard(gate) for gate in _gates_on(layers)]
    as_view = _as_view_of(layers)
    if as_view is None:
        return Reading(tuple(guards))
    guards += _mixins(as_view)
    guards += _permissions(as_view)
    handlers = dict(_handlers(as_view))
    before = _before_handlers(as_view.view_class)
    for method, handler in handlers.items():
        for gate in _gates_on(_layers_of(handler)):
            guards.append(_guard(gate, method=method, unless=before))
    return Reading(tuple(guards), tuple(handlers))


def _guard(gate: Gate, *, method: str = "", unless: str = "") -> Guard:
    """``unless``: code of the site's that may let somebody in before the gate is asked."""
    answer: Any = gate.on_closed
    if callable(answer):
        # Never the ``repr`` of a function, which may have anything in it.
        answer = getattr(answer, "__qualname__", type(answer).__qualname__)
    return Guard(
        demand=_unless(every(gate.requirements), unless),
        closed=answer,
        method=method,
        gates=(gate,),
    )


def _unless(demand: Demand, code: str) -> Demand:
    if not code:
        return demand
    return some([demand, Foreign(code)])


# Classes


def _as_view_of(layers: Iterable[Any]) -> _AsView | None:
    for layer in layers:
        attributes = _attributes(layer)
        view_class = attributes.get("view_class", attributes.get("cls"))
        if isinstance(view_class, type):
            initkwargs = attributes.get("view_initkwargs", attributes.get("initkwargs"))
            return _AsView(
                view_class,
                initkwargs=initkwargs or {},
                actions=attributes.get("actions") or {},
            )
    return None


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
        if method == "options" and _is_of_framework(handler):
            continue
        yield method, handler


def _mixins(as_view: _AsView) -> Iterator[Guard]:
    """A ``dispatch`` of the site's own may answer before it calls a mixin further down."""
    if not issubclass(as_view.view_class, mixins.GateMixin):
        return
    above: list[type[Any]] = []
    above_a_mixin = ""
    for base in as_view.view_class.__mro__:
        if base.__module__ == mixins.__name__ and "dispatch" in vars(base):
            above_a_mixin = _own_dispatch(above)
        above.append(base)

    for gate in as_view.view_class(**as_view.initkwargs).gates():
        yield _guard(gate, unless=above_a_mixin)


def _own_dispatch(classes: Iterable[type[Any]]) -> str:
    """The dotted name of the last ``dispatch`` of the site's own in ``classes``, if there is one.

    A decorated one has the module of the function inside, which may be a framework's or ours.
    """
    name = ""
    for base in classes:
        dispatch = vars(base).get("dispatch")
        is_ours = getattr(dispatch, "__module__", "") == mixins.__name__
        if dispatch is not None and not is_ours and not _is_of_framework(dispatch):
            name = f"{_name_of(base)}.dispatch()"
    return name


def _before_handlers(view_class: type[Any]) -> str:
    """The site's own code that may answer before it calls a handler, or an empty text."""
    return _own_dispatch(view_class.__mro__) or _own(view_class, "initial")


# Permissions of Django REST framework


def _permissions(as_view: _AsView) -> Iterator[Guard]:
    for name in ("get_permissions", "check_permissions"):
        own_method = _own(as_view.view_class, name)
        if own_method:
            yield Guard(Foreign(own_method), "forbid")
            return

    before = _before_handlers(as_view.view_class)
    if not before:
        before = _own(as_view.view_class, "permission_denied")
    for permission in as_view.argument("permission_classes"):
        gates: list[Gate] = []
        # As the framework does for each request: what is no class shows itself only so.
        demand = _demand_of(permission(), gates)
        if gates:
            yield Guard(_unless(demand, before), "forbid", gates=tuple(gates))


def _demand_of(permission: Any, gates: list[Gate]) -> Demand:
    """What the permission asks for. Its gates are added to ``gates``."""
    kind = type(permission)
    if kind.__module__ == PERMISSIONS and hasattr(permission, "op1"):
        operands = [permission.op1]
        if hasattr(permission, "op2"):
            operands.append(permission.op2)
        demands = [_demand_of(operand, gates) for operand in operands]
        if kind.__name__ == "NOT":
            return Not(demands[0])
        if kind.__name__ == "AND":
            return every(demands)
        return some(demands)

    gate = getattr(permission, "gate", None)
    if isinstance(gate, Gate):
        gates.append(gate)
        # A subclass that asks in its own way may let anybody in.
        if _owner_of(kind, "has_permission").__module__ == OUR_PERMISSIONS:
            return every(gate.requirements)
    return Foreign(_name_of(kind))


# What wraps what


def _layers_of(view: Any) -> Iterator[Any]:
    """``view`` and the functions inside it, from the outermost to the innermost.

    Two wrappers may name each other, so each layer is passed once.
    """
    passed: set[int] = set()
    while view is not None and id(view) not in passed:
        yield view
        passed.add(id(view))
        view = _inside(view)


def _inside(layer: Any) -> Any:
    """The function that ``layer`` wraps, or None if nobody can tell."""
    if isinstance(layer, partial):
        return layer.func
    if isinstance(layer, MethodType):
        return layer.__func__
    wrapped = _attributes(layer).get("__wrapped__")
    if wrapped is not None or isinstance(layer, type):
        return wrapped
    if isinstance(layer, FunctionType):
        return _only_function_in_closure(layer)
    call = type(layer).__call__
    if isinstance(call, FunctionType):
        return call
    return None


def _only_function_in_closure(function: FunctionType) -> Any:
    """None if there are several: nobody can tell which one is called."""
    functions: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            variable = cell.cell_contents
        except ValueError:  # it is not set yet
            continue
        if callable(variable) and not isinstance(variable, type):
            functions.append(variable)
    if len(functions) == 1:
        return functions[0]
    return None


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


def _own(view_class: type[Any], name: str) -> str:
    """The dotted name of the method if it is the site's own, or an empty text."""
    owner = _owner_of(view_class, name)
    if owner is object or _is_of_framework(vars(owner)[name]):
        return ""
    if not callable(vars(owner)[name]):
        return ""  # The ``initial`` of a form's view is a dict.
    return f"{_name_of(owner)}.{name}()"


def _owner_of(kind: type[Any], name: str) -> type[Any]:
    """The class that defines ``name`` for ``kind``, or ``object`` if none does."""
    for base in kind.__mro__:
        if name in vars(base):
            return base
    return object


def _is_of_framework(thing: Any) -> bool:
    package = str(getattr(thing, "__module__", "")).partition(".")[0]
    return package in FRAMEWORKS


def _name_of(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"
