"""The one JSON reader of credentials and key sets.

Python's own reader takes UTF-16 and lone surrogates, ``NaN``, ``Infinity``, numbers that overflow
to infinity, and repeated members (the last one wins). What two readers could understand
differently is refused here (RFC 7515 §4, RFC 8259 §6, RFC 8725 §3.7).

Reading has two steps. ``scan`` finds out what the text spells, ``freeze`` makes read-only values of
it: mapping proxies of objects, tuples of arrays. ``read`` is both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, NoReturn

MAX_DEPTH: Final = 32

_INFINITY: Final = float("inf")
_WHITESPACE: Final = " \t\n\r"
_SEPARATOR: Final = b"\x1e"


class NotStrictJSON(ValueError):
    """The bytes are not one strict JSON text. Holds nothing of them."""


class ReservedMember(NotStrictJSON):
    """An object below the outermost value has a member of a reserved name."""


def read(octets: bytes, reserved: frozenset[str] = frozenset()) -> Any:
    """The value that ``octets`` spell: UTF-8, at most ``MAX_DEPTH`` levels, read-only.

    ``reserved``: member names that no object but the outermost may have. Raises ``NotStrictJSON``
    and nothing else. The work is linear in the length, which the caller bounds.
    """
    return freeze(scan(octets), reserved)


def read_members(octets: bytes, reserved: frozenset[str]) -> dict[str, Any]:
    """The members of the object that ``octets`` spell: as ``read``, but their values not frozen."""
    pairs = scan(octets)
    if type(pairs) is not tuple:
        raise NotStrictJSON
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictJSON
    # With one brace and one bracket there is nothing nested to look at.
    if octets.find(b"{", 1) != -1 or octets.find(b"[") != octets.rfind(b"["):
        freeze(pairs, reserved)
    return members


def scan(octets: bytes) -> Any:
    """What ``octets`` spell, unfrozen: objects are tuples of pairs, arrays are lists.

    Raises ``NotStrictJSON`` and nothing else.
    """
    try:
        text = octets.decode("utf-8").strip(_WHITESPACE)
        value, end = _scan(text, 0)
        if "\\" in text:
            _require_unicode(value)
        if end == len(text):
            return value
    except (ValueError, StopIteration, RecursionError):
        pass
    # Not in the clause above: those errors hold the text, and would be chained to this one.
    raise NotStrictJSON


def scan_each(texts: list[bytes]) -> list[Any]:
    """``scan`` of each text, in one go if nothing is unusual about them.

    They are joined by a character that stands in no JSON text, not even inside a string. So no scan
    crosses it, and as many scans as texts, with one character left out after each, reach the end of
    the last only if each of them read one whole text.
    """
    values = []
    start = 0
    try:
        joined = _SEPARATOR.join([*texts, b""]).decode("utf-8")
        for _ in texts:
            value, end = _scan(joined, start)
            values.append(value)
            start = end + 1
        if "\\" in joined:
            _require_unicode(values)
        if start == len(joined):
            return values
    except (ValueError, StopIteration, RecursionError):
        pass
    # One by one: for the white space around a text, or to fail like ``scan``.
    return [scan(text) for text in texts]


def freeze(value: Any, reserved: frozenset[str], depth: int = 0) -> Any:
    """The read-only form of a scanned value that stands ``depth`` levels deep in its text.

    Raises ``NotStrictJSON`` for a repeated member and for too many levels, ``ReservedMember`` for
    a reserved one.
    """
    if type(value) is not tuple and type(value) is not list:
        return value
    if depth == MAX_DEPTH:
        raise NotStrictJSON
    depth += 1
    if type(value) is list:
        for element in value:
            if type(element) is tuple or type(element) is list:
                return tuple([freeze(element, reserved, depth) for element in value])
        return tuple(value)
    members = dict(value)
    if len(members) != len(value):
        raise NotStrictJSON
    if depth > 1 and not reserved.isdisjoint(members):
        raise ReservedMember
    for name, member in value:
        if type(member) is tuple or type(member) is list:
            members[name] = freeze(member, reserved, depth)
    return MappingProxyType(members)


def _require_unicode(value: Any) -> None:
    """Refuse lone surrogates: encoding finds them wherever they stand; only escapes spell them."""
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def _finite(digits: str) -> float:
    number = float(digits)
    if abs(number) == _INFINITY:
        raise NotStrictJSON
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictJSON


# Built once: building a decoder costs more than reading a header. The scanner and not ``decode``,
# which matches white space twice with a regular expression. Pairs, not dicts, so that repeated
# members are still there to be seen.
_decoder = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=_finite, parse_constant=_refuse_constant
)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once  # type: ignore[attr-defined]  # typeshed leaves it out
