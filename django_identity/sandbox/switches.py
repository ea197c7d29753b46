"""The choices where the specification is silent and several readings are plausible.

Each switch can be given on the command line and changed at run time through the control API.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any


class TokenSubject(StrEnum):
    """How the token endpoint's answer names the person, if it does."""

    NONE = "none"
    USER_ID = "user_id"
    SUB = "sub"
    ID_TOKEN = "id_token"  # noqa: S105 -- a word, no secret
    JWT_ACCESS_TOKEN = "jwt_access_token"  # noqa: S105 -- a word, no secret


@dataclass(frozen=True, slots=True)
class Switches:
    """One setting of all switches; the defaults are the specification read literally."""

    token_subject: TokenSubject = field(
        default=TokenSubject.NONE,
        metadata={"help": "how the token answer names the subject"},
    )
    users_me: bool = field(
        default=True,
        metadata={"help": "accept `me` in place of the user id in the user endpoints"},
    )
    claims_iat: bool = field(
        default=True,
        metadata={"help": "send `iat` in credentials"},
    )
    decoys: int = field(
        default=0,
        metadata={"help": "number of decoy digests in a credential's `_sd`"},
    )


class UnknownSwitch(ValueError):
    """A switch that does not exist, or a value it does not take."""


_lock = threading.Lock()
_current = Switches()


def current() -> Switches:
    """Return the switches in force."""
    return _current


def change(values: Mapping[str, object]) -> Switches:
    """Set the named switches and return all of them.

    Args:
        values: switch name to new value; switches not named keep theirs.

    Raises:
        UnknownSwitch: nothing was changed.
    """
    global _current
    with _lock:
        parsed: dict[str, Any] = {name: _parse(name, value) for name, value in values.items()}
        _current = replace(_current, **parsed)
        return _current


def _parse(name: str, value: object) -> TokenSubject | bool | int:
    """Return ``value`` in the type of the switch ``name``."""
    defaults = {each.name: each.default for each in fields(Switches)}
    match defaults.get(name), value:
        case TokenSubject(), str() if value in set(TokenSubject):
            return TokenSubject(value)
        case bool(), _:
            if isinstance(value, bool):
                return value
        case int(), int() if not isinstance(value, bool) and 0 <= value <= 100:
            return value
    raise UnknownSwitch(f"{name} cannot be {value!r}.")
