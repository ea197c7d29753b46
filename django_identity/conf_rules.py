"""What each key of ``DJANGO_IDENTITY`` may hold, and every way in which it can be wrong."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import SplitResult, urlsplit

SETTING = "DJANGO_IDENTITY"
ENVIRONMENTS = ("live", "test")
SHORTEST_SECRET = 16
LONGEST_FLOW = 600
RATE = re.compile(r"[1-9]\d{0,5}/(?:s|min)")
SECONDS_IN = {"s": 1.0, "min": 60.0}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the setting. ``fatal``: the application cannot be used at all."""

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
    """Scheme, host and port of ``url`` (RFC 6454), the default port left out."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


# What each key may hold


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_client_id(value: object) -> bool:
    """Basic credentials end the client id at the first colon (RFC 7617 §2)."""
    return _is_text(value) and ":" not in str(value)


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, (list, tuple)) and all(_is_text(item) for item in value)


def _is_scopes(value: object) -> bool:
    return _is_texts(value) and bool(value) and not any(" " in scope for scope in value)


def _is_address(value: object) -> bool:
    if not _is_text(value):
        return False
    parts = _split(str(value))
    return (
        parts is not None
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and not (parts.query or parts.fragment or parts.username or parts.password)
    )


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 60


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 32


def _is_days(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 3650


def _is_rate(value: object) -> bool:
    return isinstance(value, str) and RATE.fullmatch(value) is not None


def parsed_rate(rate: str) -> tuple[int, float]:
    """``"50/s"`` as calls and seconds: ``(50, 1.0)``."""
    calls, _, unit = rate.partition("/")
    return int(calls), SECONDS_IN[unit]


def _is_lifetime(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LONGEST_FLOW


def _or_none(rule: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or rule(value)


@dataclass(frozen=True, slots=True)
class _Rule:
    accepts: Callable[[object], bool]
    wanted: str
    default: Any = None
    required: bool = False


RULES: Mapping[str, _Rule] = {
    "ENVIRONMENT": _Rule(lambda value: value in ENVIRONMENTS, '"live" or "test"', required=True),
    "BASE_URL": _Rule(_is_address, "an http(s) address that ends in /api/v1", required=True),
    "AUTH_URL": _Rule(_is_address, "an http(s) address", required=True),
    "API_ORIGIN": _Rule(_or_none(_is_address), "an http(s) address without a path, or None"),
    "CLIENT_ID": _Rule(_is_client_id, "a text without a colon", required=True),
    "CLIENT_SECRET": _Rule(_is_text, "a text", required=True),
    "WEBHOOK_SECRETS": _Rule(_is_texts, "a list of texts", default=()),
    "SCOPES": _Rule(
        _is_scopes, "a list of scopes", default=("profile:read", "kyc:read", "claims:read")
    ),
    "CONNECT_SCOPES": _Rule(
        _is_scopes, "a list of scopes", default=("profile:basic", "kyc:status")
    ),
    "POLICY": _Rule(_is_text, "a dotted path", default="django_identity.policy.IdentityPolicy"),
    "ENCRYPTION_KEYS": _Rule(_or_none(_is_texts), "a list of texts, or None"),
    "DOCUMENT_KEYS": _Rule(
        lambda value: isinstance(value, (list, tuple)), "a list of JWKs", default=()
    ),
    "REDIRECT_URI": _Rule(_or_none(_is_address), "the registered callback address, or None"),
    "TIMEOUT": _Rule(_is_positive, "a number of seconds up to 60", default=10.0),
    "AUTHORIZATION_LIFETIME": _Rule(
        _is_lifetime, f"seconds up to {LONGEST_FLOW}", default=LONGEST_FLOW
    ),
    "RATE_LIMIT": _Rule(_or_none(_is_rate), 'calls a second or minute, as "50/s"', default="50/s"),
    "TRUSTED_PROXIES": _Rule(_is_count, "the number of proxies before the site", default=0),
    "EVENT_PAYLOAD_DAYS": _Rule(_is_days, "a number of days", default=30),
    "EVENT_DAYS": _Rule(_is_days, "a number of days", default=180),
}


def alias_problems(alias: str, given: object) -> Iterator[Problem]:
    """Every mistake in the settings of one application."""
    where = f"{SETTING}[{alias!r}]"
    if not isinstance(given, Mapping):
        yield Problem("E001", f"{where} must be a dict.", "See the settings in the documentation.")
        return
    for name in given.keys() - RULES.keys():
        yield Problem("E002", f"{where} has an unknown key {name!r}.", "Is it misspelt?")
    for name, rule in RULES.items():
        if name not in given:
            if rule.required:
                yield Problem("E003", f"{where} lacks {name}.", f"Set it to {rule.wanted}.")
        elif not rule.accepts(given[name]):
            yield Problem("E004", f"{where}: {name} is not usable.", f"It must be {rule.wanted}.")
        else:
            yield from _value_problems(where, name, given)


def _value_problems(where: str, name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    value = given[name]
    if name in ("BASE_URL", "AUTH_URL", "API_ORIGIN", "REDIRECT_URI") and value:
        yield from _transport_problems(where, name, value, live=given.get("ENVIRONMENT") == "live")
    if name == "BASE_URL" and not value.rstrip("/").endswith("/api/v1"):
        hint = "The API version is part of the address: it ends in /api/v1."
        yield Problem("E006", f"{where}: BASE_URL does not end in /api/v1.", hint)
    if name == "API_ORIGIN" and value and value.rstrip("/") != origin_of(value):
        hint = "It is the API's host without any path; the credential's issuer is compared with it."
        yield Problem("E007", f"{where}: API_ORIGIN has a path or is not in its plain form.", hint)
    if name in ("CLIENT_SECRET", "WEBHOOK_SECRETS", "ENCRYPTION_KEYS") and value:
        held = [value] if isinstance(value, str) else value
        if any(len(secret) < SHORTEST_SECRET for secret in held):
            hint = f"Use at least {SHORTEST_SECRET} random characters."
            yield Problem("E008", f"{where}: {name} is too short to be safe.", hint, fatal=False)


def _transport_problems(where: str, name: str, value: str, *, live: bool) -> Iterator[Problem]:
    parts = urlsplit(value)
    if parts.scheme == "https" or (is_loopback(parts.hostname) and not live):
        return
    hint = "Use https. Plain http is taken for this machine alone, and never in live."
    yield Problem("E005", f"{where}: {name} is not an https address.", hint)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
