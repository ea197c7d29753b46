"""JSON values that cannot be changed any more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def freeze(value: Any) -> Any:
    """``value`` with read-only mappings for its objects and tuples for its arrays."""
    kind = type(value)
    if kind is dict:
        return MappingProxyType({name: freeze(member) for name, member in value.items()})
    if kind is list:
        return tuple(map(freeze, value))
    return value


def thaw(value: Any) -> Any:
    """The opposite of ``freeze``: fresh dicts and lists, which ``json.dumps`` takes."""
    if isinstance(value, Mapping):
        return {name: thaw(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return [thaw(element) for element in value]
    return value
