"""Ids of parametrised tests: plain data is written out, where pytest would number it."""

import json
from datetime import timedelta
from types import FunctionType

LONGEST = 80
STATUS_LINE = b"HTTP/1.1 "


def pytest_make_parametrize_id(val: object) -> str | None:
    """The beginning of a long text, the JSON of plain data; None for what pytest names itself.

    It must be the same in each worker: so sets are sorted, and times are left to pytest.
    """
    if isinstance(val, bytes):
        return _text(val)[:LONGEST]
    if isinstance(val, str):
        return _text(val.encode())[:LONGEST] if len(val) > LONGEST else None
    if not isinstance(val, dict | list | tuple | set | timedelta):
        return None
    try:
        return json.dumps(val, default=_plain)[:LONGEST]
    except TypeError:
        return None


def _text(value: bytes) -> str:
    """Printable ASCII. Of an HTTP answer, the status and the body."""
    if value.startswith(STATUS_LINE):
        head, _, body = value.removeprefix(STATUS_LINE).partition(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0]
        value = status + b": " + body
    return str(value)[2:-1]


def _plain(value: object) -> object:
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, type | FunctionType):
        return value.__name__
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, property):
        return "a property"
    if value is ...:
        return "..."
    raise TypeError
