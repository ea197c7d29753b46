"""The strict JSON reader for credentials, key sets, the service's answers, events and API bodies.

Python's reader accepts UTF-16, lone surrogates, ``NaN``, ``Infinity``, numbers that overflow to
infinity, integers of any length, repeated members (the last one wins) and any depth. This reader
refuses all texts that two readers may understand differently (RFC 7515 §4, RFC 8259 §6, RFC 8725
§3.7).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

MAX_DEPTH = 32
#: MySQL stores no longer one, and other readers take it for infinity.
LONGEST_INTEGER = 308
#: The members of an object, as the reader returns it.
JSONObject = Mapping[str, Any]


class NotStrictJSON(ValueError):
    """The bytes are not one strict JSON text. The message says why, without quoting the text."""


def read(octets: bytes, *, deepest: int = MAX_DEPTH) -> Any:
    """Parse ``octets``: UTF-8, at most ``deepest`` levels.

    Raises only ``NotStrictJSON``. The work is linear in the length, which the caller must limit.
    """
    try:
        text = octets.decode("utf-8").strip(" \t\n\r")
        value, end = _scan(text, 0)
        if end != len(text):
            raise NotStrictJSON("not JSON")
        # A short text cannot be too deep, and only escapes can write a lone surrogate.
        if len(text) > 2 * deepest and text.count("[") + text.count("{") > deepest:
            _require_depth(value, deepest)
        if "\\" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except NotStrictJSON as error:
        reason = str(error)
    except UnicodeError:
        reason = "not Unicode"
    except RecursionError:
        reason = "nested too deep"
    except (ValueError, StopIteration):
        reason = "not JSON"
    # Raised here, so that the errors above, which hold the text, are not chained to it.
    raise NotStrictJSON(reason)


def read_object(octets: bytes, *, deepest: int = MAX_DEPTH) -> dict[str, Any]:
    """Like ``read``, but the value must be an object."""
    value = read(octets, deepest=deepest)
    if type(value) is not dict:
        raise NotStrictJSON("not an object")
    return value


def _require_depth(value: Any, left: int) -> None:
    if type(value) is dict:
        value = list(value.values())
    if type(value) is not list:
        return
    if not left:
        raise NotStrictJSON("nested too deep")
    for member in value:
        _require_depth(member, left - 1)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictJSON("a repeated name")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if abs(number) == float("inf"):
        raise NotStrictJSON("a number too large")
    return number


def _storable(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise NotStrictJSON("a number too large")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictJSON("not a JSON number")


# Built once, because building a decoder costs more than reading a header. Its scanner is faster
# than ``decode``, which matches white space twice with a regular expression.
_decoder = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_float=_finite,
    parse_int=_storable,
    parse_constant=_refuse_constant,
)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once  # type: ignore[attr-defined]  # typeshed leaves it out
