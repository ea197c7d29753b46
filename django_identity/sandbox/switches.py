"""The switches, for places where the specification allows several readings.

Each switch can be given on the command line and changed at run time, in the console and by the
control API. The defaults are the specification's own words; where it is silent, the first value.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from django_identity.sandbox.errors import Invalid

Value = str | bool


def _choice(text: str, *values: str) -> Any:
    """A switch between words; the first is the default."""
    return field(default=values[0], metadata={"help": text, "values": values})


def _flag(text: str, *, default: bool) -> Any:
    """A switch that is on or off."""
    return field(default=default, metadata={"help": text, "values": (True, False)})


@dataclass(frozen=True, slots=True)
class Switches:
    """The values of all switches."""

    token_subject: str = _choice(
        "how the token answer names the subject",
        "none",
        "user_id",
        "sub",
        "id_token",
        "jwt_access_token",
    )
    id_token_aud: str = _choice(
        "`aud` of an ID token: one text, or a list",
        "text",
        "list",
    )
    access_token_aud: str = _choice(
        "`aud` of a JWT access token: the application, or the API's origin",
        "client",
        "origin",
    )
    token_errors: str = _choice(
        "the form of the token endpoint's errors: OAuth's, or the service's envelope",
        "oauth",
        "envelope",
    )
    users_me: bool = _flag(
        "accept `me` for the user id in the user endpoints",
        default=True,
    )
    profile_members: str = _choice(
        "the members of a profile: what the granted scopes list, or all",
        "scopes",
        "all",
    )
    optional_members: bool = _flag(
        "send members that may be absent: the photo, `kyc_level` of a profile, `verified_at`, "
        "`provider` of the KYC status, `proof_hash`, `expires_at`, an error's `message`",
        default=True,
    )
    kyc_user_id: bool = _flag("name the person in the KYC answer", default=False)
    claim_values: str = _choice(
        "the form of claim values other than that of kyc_verified",
        "object",
        "bare",
    )
    claims_revoked: bool = _flag(
        "say of each listed claim whether it is `revoked`; without it the list has the fields of "
        "the credential variant alone",
        default=True,
    )
    claims_iat: bool = _flag("send `iat` in credentials", default=True)
    event_details: bool = _flag(
        "say more than `user_id` in events other than kyc.verified",
        default=True,
    )
    event_subject: str = _choice(
        "where events other than kyc.verified name the person",
        "data.user_id",
        "data.userId",
        "data.sub",
        "data.user.user_id",
        "data.user.id",
        "data.subject",
        "data.id",
        "user_id",
    )
    event_timestamp: str = _choice(
        "the form of an event's `timestamp`",
        "milliseconds",
        "seconds",
        "offset",
    )
    missing_connect_code: str = _choice(
        "what a Connect request without a code is told",
        "invalid",
        "required",
    )
    connect_nested: bool = _flag(
        "put profile and kyc into a member `data` of the redemption",
        default=True,
    )
    connect_signature: str = _choice(
        "what the `signature` of a redemption is",
        "hmac",
        "jws",
    )


ALL = {switch.name: switch for switch in fields(Switches)}
_current = Switches()


def current() -> Switches:
    """Return the values of now."""
    return _current


def change(values: Mapping[str, object]) -> Switches:
    """Set the named switches and return all of them.

    Raises:
        Invalid: a value that a switch does not have; nothing was changed.
    """
    global _current
    for name, value in values.items():
        if value not in ALL[name].metadata["values"]:
            raise Invalid(f"{name} cannot be {value!r}.")
    known: Any = values
    _current = replace(_current, **known)
    return _current


def reset() -> None:
    """Give every switch its default."""
    change(asdict(Switches()))
