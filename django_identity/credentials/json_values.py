"""JSON values that cannot be changed any more, and what no claim may have in it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

DIGEST_MEMBERS: Final = frozenset({"_sd", "_sd_alg", "..."})
"""Member names that mean something to SD-JWT (RFC 9901 §4), so that no claim may have them."""


def freeze(value: Any) -> Any:
    """``value`` with read-only mappings for its objects and tuples for its arrays."""
    kind = type(value)
    if kind is dict:
        return MappingProxyType({name: freeze(member) for name, member in value.items()})
    if kind is list:
        return tuple(map(freeze, value))
    return value


def has_digests(value: Any) -> bool:
    """Whether an object in ``value``, or ``value`` itself, has a member for digests."""
    if type(value) is dict:
        if not DIGEST_MEMBERS.isdisjoint(value):
            return True
        value = value.values()
    elif type(value) is not list:
        return False
    for member in value:
        if (type(member) is dict or type(member) is list) and has_digests(member):
            return True
    return False


def thaw(value: Any) -> Any:
    """The opposite of ``freeze``: fresh dicts and lists, which ``json.dumps`` takes."""
    if isinstance(value, Mapping):
        return {name: thaw(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return [thaw(element) for element in value]
    return value
