"""The functions of a view, from the outermost in, and the site's own code among them."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType
from typing import Any

#: What calls what it wraps, or refuses.
TRUSTED = ("django", "django_identity", "rest_framework", "contextlib", "functools")
#: The module of ``method_decorator``, which calls decorators that only its closure has.
DECORATORS = "django.utils.decorators"
#: The module of ``api_view``, which calls the one function that its closure has.
API_VIEW = "rest_framework.decorators"


def layers_of(view: Any) -> Iterator[Any]:
    """``view`` and the functions inside it, from the outermost to the innermost.

    Two wrappers may name each other, so each layer is passed once.
    """
    passed: set[int] = set()
    while view is not None and id(view) not in passed:
        yield view
        passed.add(id(view))
        view = _inside(view)


def _inside(layer: Any) -> Any:
    """The function that ``layer`` wraps, as far as it says so."""
    if isinstance(layer, partial):
        return layer.func
    if isinstance(layer, MethodType):
        return layer.__func__
    attributes = attributes_of(layer)
    wrapped = attributes.get("__wrapped__")
    view_class = attributes.get("view_class")
    # It has the attributes of ``dispatch``, too.
    if isinstance(view_class, type) and not _has_in_closure(layer, wrapped):
        return getattr(view_class, "dispatch", None)
    if wrapped is None and _module_of(layer) == API_VIEW:
        return next(filter(callable, _closure(layer)), None)
    if wrapped is not None or isinstance(layer, type | FunctionType):
        return wrapped
    call = type(layer).__call__
    return call if isinstance(call, FunctionType) else None


def own_code_of(layer: Any) -> tuple[str, ...]:
    """The name of the layer if it is the site's own code, and of its decorators that are.

    A framework's wrapper calls its ``__wrapped__``, unless that was set to something else.
    ``functools.wraps`` hides neither module nor name of the code itself.
    """
    if not isinstance(layer, FunctionType):
        wraps = "__wrapped__" in attributes_of(layer)
        if not wraps or _is_trusted(type(layer)):
            return ()
        return (f"{type(layer).__qualname__}()",)

    name = layer.__code__.co_qualname.partition(".<locals>")[0]
    if not _is_trusted(layer):
        return (f"{name}()",)
    attributes = attributes_of(layer)
    wrapped = attributes.get("__wrapped__")
    if wrapped is not None and not _has_in_closure(layer, wrapped):
        return () if "view_class" in attributes else (f"{name}.__wrapped__",)
    if _module_of(layer) != DECORATORS:
        return ()
    names: list[str] = []
    for each in _closure(layer):
        if each is not wrapped:
            names += _own_decorator(each)
    return tuple(names)


def _own_decorator(thing: Any) -> tuple[str, ...]:
    """What ``method_decorator`` calls, or the middleware of ``decorator_from_middleware``."""
    if _module_of(thing) == DECORATORS:
        # What is no function there is a middleware, or its class.
        inner = [each for each in _closure(thing) if not isinstance(each, FunctionType)]
        names = [name for each in inner for name in _own_decorator(each)]
        return tuple(names[:1])
    if isinstance(thing, FunctionType | MethodType | partial):
        for layer in layers_of(thing):
            own_code = own_code_of(layer)
            if own_code:
                return own_code
        return ()

    owner = thing if isinstance(thing, type) else type(thing)
    if not callable(thing) or _is_trusted(owner):
        return ()
    return (f"{owner.__qualname__}()",)


def _has_in_closure(layer: Any, wrapped: Any) -> bool:
    return any(content is wrapped for content in _closure(layer))


def _closure(layer: Any) -> Iterator[Any]:
    """What the variables of the function have, and what is in lists of them."""
    for cell in getattr(layer, "__closure__", None) or ():
        with suppress(ValueError):  # it is not set yet
            content = cell.cell_contents
            if isinstance(content, list | tuple):
                yield from content
            else:
                yield content


def attributes_of(layer: Any) -> dict[str, Any]:
    """Never by ``getattr``, which some objects answer for any name."""
    try:
        return dict(vars(layer))
    except TypeError:
        return {}


def own_in(base: type[Any], name: str) -> tuple[str, ...]:
    method = vars(base).get(name)
    method = getattr(method, "__func__", method)
    # The ``initial`` of a form's view is a dict.
    if not callable(method):
        return ()
    has_own_code = any(own_code_of(layer) for layer in layers_of(method))
    if not has_own_code:
        return ()
    return (f"{base.__qualname__}.{name}()",)


def _is_trusted(thing: Any) -> bool:
    return _module_of(thing).partition(".")[0] in TRUSTED


def _module_of(thing: Any) -> str:
    """Where its code stands: ``functools.wraps`` copies the name of another module."""
    if isinstance(thing, FunctionType):
        return str(thing.__globals__.get("__name__"))
    return str(getattr(thing, "__module__", ""))
