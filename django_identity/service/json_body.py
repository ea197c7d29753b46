"""A strict reader for JSON bodies: one object, bounded in depth, and nothing but JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEEPEST = 32
LONGEST_NUMBER = 32
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
NOT_BRACKETS = re.compile(r"[^\[\]{}]+")


class UnreadableJson(ValueError):
    """Not one strict JSON object. The message never quotes the body."""


def read_object(body: bytes, *, deepest: int = DEEPEST) -> dict[str, Any]:
    """The JSON object in ``body``.

    Refuses what RFC 8259 leaves open: other encodings than UTF-8, repeated names, ``NaN``, numbers
    that overflow, more than ``deepest`` levels. Raises ``UnreadableJson``.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableJson("not UTF-8") from None
    # The depth is bounded before the parser recurses into it; few brackets cannot be deep.
    brackets = text.count("{") + text.count("[")
    if brackets > deepest and _depth(text, deepest) > deepest:
        raise UnreadableJson("nested too deep")
    try:
        parsed = _DECODER.decode(text)
    except UnreadableJson:
        raise
    except (ValueError, RecursionError):
        raise UnreadableJson("not JSON") from None
    if not isinstance(parsed, dict):
        raise UnreadableJson("not an object")
    return parsed


def _depth(text: str, enough: int) -> int:
    """How deep ``text`` is nested; what is deeper than ``enough`` is not counted on."""
    deepest = depth = 0
    for bracket in NOT_BRACKETS.sub("", STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > enough:
            break
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableJson("a repeated name")
    return members


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise UnreadableJson("a number too long")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise UnreadableJson("a number too large")
    return number


def _no_constant(name: str) -> Any:
    raise UnreadableJson("not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_integer,
    parse_float=_finite,
    parse_constant=_no_constant,
)
