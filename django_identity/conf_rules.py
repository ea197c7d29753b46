"""The keys of ``DJANGO_IDENTITY`` with their parsers, and all mistakes that the keys may have."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

SETTING = "DJANGO_IDENTITY"
ENVIRONMENTS = ("live", "test")
SHORTEST_SECRET = 16
SHORTEST_SPAN, LONGEST_SPAN = timedelta(hours=1), timedelta(days=366)
RATE = re.compile(r"(?P<calls>[1-9][0-9]{0,5})/(?P<unit>s|min)")
SECONDS_IN = {"s": 1.0, "min": 60.0}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the setting. ``fatal``: the application cannot be used."""

    check_id: str
    message: str
    hint: str
    fatal: bool = True


def is_loopback(host: str | None) -> bool:
    """Whether ``host`` names this machine: ``localhost``, ``127.0.0.0/8`` or ``::1``."""
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def origin_of(url: str) -> str:
    """Scheme, host and port of ``url`` (RFC 6454), without a default port."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


# The parsers: each returns the value for ``Application`` or raises ``ValueError``.


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError
    return value


def _client_id(value: object) -> str:
    """Refuse a colon, because it ends the client id in Basic credentials (RFC 7617 §2)."""
    text = _text(value)
    if ":" in text:
        raise ValueError
    return text


def _environment(value: object) -> str:
    if value not in ENVIRONMENTS:
        raise ValueError
    return str(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _list(value: object) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    return tuple(value)


def _scopes(value: object) -> tuple[str, ...]:
    scopes = _texts(value)
    if not scopes or any(" " in scope for scope in scopes):
        raise ValueError
    return scopes


def _address(value: object) -> str:
    text = _text(value)
    parts = urlsplit(text)
    _ = parts.port  # raises ValueError for what is no port
    has_more = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not parts.hostname or has_more:
        raise ValueError
    return text


def _base(value: object) -> str:
    """A base address, to which paths are added."""
    return _address(value).rstrip("/")


def _number(most: float) -> Callable[[object], float]:
    def parse(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            raise ValueError
        return float(value)

    return parse


def _whole(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError
        return value

    return parse


def _span(value: object) -> timedelta:
    if not isinstance(value, timedelta) or not SHORTEST_SPAN <= value <= LONGEST_SPAN:
        raise ValueError
    return value


def _rate(value: object) -> tuple[int, float]:
    """``"50/s"`` as calls and seconds: ``(50, 1.0)``."""
    found = RATE.fullmatch(_text(value))
    if found is None:
        raise ValueError
    return int(found["calls"]), SECONDS_IN[found["unit"]]


def _or_none(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


@dataclass(frozen=True, slots=True)
class Rule:
    """One key: its parser, a description of valid values, and its default."""

    parse: Callable[[Any], Any]
    wanted: str
    default: Any = None
    required: bool = False


POLICY = "django_identity.policy.IdentityPolicy"
SCOPES = ("profile:read", "kyc:read", "claims:read")
# Answers for these scopes name the person. The token answer may not.
NAMING_SCOPES = frozenset(SCOPES)
CONNECT_SCOPES = ("profile:basic", "kyc:status")
CALLBACK = "the registered callback address, or None"
SPAN = "a datetime.timedelta from an hour to a year"

RULES: Mapping[str, Rule] = {
    "ENVIRONMENT": Rule(_environment, '"live" or "test"', required=True),
    "BASE_URL": Rule(_base, "an http(s) address that ends in /api/v1", required=True),
    "AUTH_URL": Rule(_base, "an http(s) address", required=True),
    "API_ORIGIN": Rule(_or_none(_base), "an http(s) address without a path, or None"),
    "CLIENT_ID": Rule(_client_id, "a text without a colon", required=True),
    "CLIENT_SECRET": Rule(_text, "a text", required=True),
    "WEBHOOK_SECRETS": Rule(_texts, "a list of texts", default=()),
    "SCOPES": Rule(_scopes, "a list of scopes", default=SCOPES),
    "CONNECT_SCOPES": Rule(_scopes, "a list of scopes", default=CONNECT_SCOPES),
    "POLICY": Rule(_text, "a dotted path", default=POLICY),
    "ENCRYPTION_KEYS": Rule(_or_none(_texts), "a list of texts, or None"),
    "DOCUMENT_KEYS": Rule(_list, "a list of JWKs", default=()),
    "REDIRECT_URI": Rule(_or_none(_address), CALLBACK),
    "TIMEOUT": Rule(_number(60), "a number of seconds up to 60", default=10.0),
    "RATE_LIMIT": Rule(_or_none(_rate), 'calls a second or minute, as "50/s"', default="50/s"),
    "EVENT_PAYLOAD_DAYS": Rule(_whole(1, 3650), "a number of days", default=30),
    "EVENT_DAYS": Rule(_whole(1, 3650), "a number of days", default=180),
    "REVOKED_DAYS": Rule(_whole(1, 3650), "a number of days", default=90),
    "KYC_HOLDS": Rule(_span, SPAN, default=timedelta(hours=48)),
    "CONNECT_KYC_HOLDS": Rule(_span, SPAN, default=timedelta(days=30)),
    "CA_FILE": Rule(_or_none(_text), "the path of a PEM file, or None"),
    "PROXY": Rule(_or_none(_text), 'an address as "http://proxy.example:3128", or None'),
}


def parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parsed value of each key, by its name in lower case. Raises ``ValueError``."""
    return {name.lower(): rule.parse(given.get(name, rule.default)) for name, rule in RULES.items()}


def alias_problems(alias: str, given: object) -> Iterator[Problem]:
    """All mistakes in the settings of one application."""
    where = f"{SETTING}[{alias!r}]"
    if not isinstance(given, Mapping):
        yield Problem("E001", f"{where} must be a dict.", "See the settings in the documentation.")
        return
    for name in given.keys() - RULES.keys():
        yield Problem("E002", f"{where} has an unknown key {name!r}.", "Check the spelling.")
    for name, rule in RULES.items():
        if name not in given:
            if rule.required:
                yield Problem("E003", f"{where} lacks {name}.", f"Set it to {rule.wanted}.")
            continue
        try:
            rule.parse(given[name])
        except ValueError:
            yield Problem("E004", f"{where}: {name} is invalid.", f"It must be {rule.wanted}.")
        else:
            yield from _value_problems(where, name, given)


def _value_problems(where: str, name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    value = given[name]
    if name in ("BASE_URL", "AUTH_URL", "API_ORIGIN", "REDIRECT_URI") and value:
        yield from _transport_problems(where, name, value, live=given.get("ENVIRONMENT") == "live")
    if name == "BASE_URL" and not value.rstrip("/").endswith("/api/v1"):
        hint = "The API version is part of the address. Add /api/v1."
        yield Problem("E006", f"{where}: BASE_URL does not end in /api/v1.", hint)
    if name == "API_ORIGIN" and value and value.rstrip("/") != origin_of(value):
        hint = "It is scheme and host without a path, and is compared with a credential's issuer."
        yield Problem("E007", f"{where}: API_ORIGIN is not a plain origin.", hint)
    if name in ("CLIENT_SECRET", "WEBHOOK_SECRETS", "ENCRYPTION_KEYS") and value:
        held = [value] if isinstance(value, str) else value
        if any(len(secret) < SHORTEST_SECRET for secret in held):
            hint = f"Use at least {SHORTEST_SECRET} random characters."
            yield Problem("E008", f"{where}: {name} is too short to be safe.", hint, fatal=False)
    if name == "SCOPES" and not NAMING_SCOPES & {*value}:
        hint = f"Add one of {', '.join(sorted(NAMING_SCOPES))}."
        problem = f"{where}: with these SCOPES no answer of the service names the person."
        yield Problem("E019", problem, hint, fatal=False)
    if name == "CA_FILE" and value:
        yield from _ca_problems(where, value)
    if name == "PROXY" and value and not _is_proxy(value):
        hint = "Its form is http://[user:password@]host:port. TLS passes through it unchanged."
        yield Problem("E015", f"{where}: PROXY is not the address of a proxy.", hint)


def _ca_problems(where: str, path: str) -> Iterator[Problem]:
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError):  # an ``SSLError`` is an ``OSError``
        hint = "It must be a file of PEM certificates that the site's processes can read."
        yield Problem("E014", f"{where}: CA_FILE contains no usable certificate.", hint)


def _transport_problems(where: str, name: str, value: str, *, live: bool) -> Iterator[Problem]:
    parts = urlsplit(value)
    if parts.scheme == "https" or (is_loopback(parts.hostname) and not live):
        return
    hint = "Use https. Plain http is allowed only for loopback addresses, and never in live."
    yield Problem("E005", f"{where}: {name} is not an https address.", hint)


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value)
        has_port = parts.port is not None
    except ValueError:
        return False
    has_more = parts.query or parts.fragment or parts.path not in ("", "/")
    return parts.scheme == "http" and bool(parts.hostname) and has_port and not has_more
