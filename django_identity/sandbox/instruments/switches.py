"""The switches, for places where the specification allows several readings.

Each switch can be given on the command line and changed at run time through the control API.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from django_identity.sandbox.server.marking import marked as _


class TokenSubject(StrEnum):
    """How the token endpoint's answer names the person, if at all."""

    NONE = "none"
    USER_ID = "user_id"
    SUB = "sub"
    ID_TOKEN = "id_token"  # noqa: S105 -- a word, no secret
    JWT_ACCESS_TOKEN = "jwt_access_token"  # noqa: S105 -- a word, no secret


class EventTimestamp(StrEnum):
    """The form of ISO 8601 for the time-stamp of an event."""

    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    OFFSET = "offset"


class EventJson(StrEnum):
    """How the body of an event is written."""

    COMPACT = "compact"
    INDENTED = "indented"


class ClaimValues(StrEnum):
    """What a claim's value in a credential looks like."""

    OBJECT = "object"
    BARE = "bare"


class ConnectSignature(StrEnum):
    """The kind of signature of a Connect redemption."""

    HMAC = "hmac"
    JWS = "jws"


class MissingConnectCode(StrEnum):
    """The error for a Connect request in the current form without a code."""

    INVALID = "invalid"
    REQUIRED = "required"


def switch(default: Any, text: str) -> Any:
    """A switch with its default and its explanation, which the console translates."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class Switches:
    """The values of all switches. The defaults follow the specification literally."""

    token_subject: TokenSubject = switch(
        TokenSubject.NONE, _("how the token answer names the subject")
    )
    basic_clients: bool = switch(
        True, _("accept a client's Basic credentials at the token endpoint too")
    )
    users_me: bool = switch(True, _("accept `me` in place of the user id in the user endpoints"))
    kyc_user_id: bool = switch(True, _("name the person in the KYC answer too"))
    claim_values: ClaimValues = switch(
        ClaimValues.OBJECT, _("the form of claim values other than kyc_verified's")
    )
    claims_iat: bool = switch(True, _("send `iat` in credentials"))
    decoys: int = switch(0, _("number of decoy digests in a credential's `_sd`"))
    event_details: bool = switch(
        True, _("say more than `user_id` in events other than kyc.verified")
    )
    event_timestamp: EventTimestamp = switch(
        EventTimestamp.MILLISECONDS, _("the form of an event's `timestamp`")
    )
    event_json: EventJson = switch(EventJson.COMPACT, _("how an event's body is written"))
    parallel_deliveries: int = switch(
        1, _("how many events are sent to one application at a time; 0 sends none")
    )
    webhook_timeout: int = switch(10, _("seconds that a receiver has to answer"))
    missing_connect_code: MissingConnectCode = switch(
        MissingConnectCode.INVALID, _("what a Connect request without a code is told")
    )
    connect_refusals_spend: bool = switch(
        True, _("spend a Connect code on a mismatch or an unknown scope too")
    )
    connect_nested: bool = switch(
        True, _("put profile and kyc into a member `data` of the redemption")
    )
    connect_messages: bool = switch(True, _("send the `message` of Connect errors"))
    connect_signature: ConnectSignature = switch(
        ConnectSignature.HMAC, _("what the `signature` of a redemption is")
    )


class UnknownSwitch(ValueError):
    """An unknown switch, or an invalid value."""


HIGHEST_NUMBER = 100
_lock = threading.Lock()
_current = Switches()


def current() -> Switches:
    return _current


def change(values: Mapping[str, object]) -> Switches:
    """Set the named switches and return all of them.

    Args:
        values: switch name to new value; other switches stay unchanged.

    Raises:
        UnknownSwitch: nothing was changed.
    """
    global _current
    with _lock:
        parsed: dict[str, Any] = {name: _parse(name, value) for name, value in values.items()}
        _current = replace(_current, **parsed)
        return _current


def reset() -> None:
    """Give every switch its default."""
    global _current
    with _lock:
        _current = Switches()


def _parse(name: str, value: object) -> StrEnum | bool | int:
    """Return ``value`` in the type of the switch ``name``."""
    defaults = {each.name: each.default for each in fields(Switches)}
    match defaults.get(name), value:
        case StrEnum() as default, str() if value in set(type(default)):
            return type(default)(value)
        case bool(), _:
            if isinstance(value, bool):
                return value
        case int(), int() if not isinstance(value, bool) and 0 <= value <= HIGHEST_NUMBER:
            return value
    raise UnknownSwitch(f"{name} cannot be {value!r}.")
