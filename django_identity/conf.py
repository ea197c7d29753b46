"""The setting ``DJANGO_IDENTITY``, read late and parsed once into frozen values.

``application("default")`` is what everything else asks. ``problems()`` lists every mistake at once;
the system checks report them, ``application()`` raises those that leave nothing to work with.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.signals import setting_changed

from django_identity.exceptions import ConfigurationError

SETTING = "DJANGO_IDENTITY"
DEFAULT_ALIAS = "default"
ENVIRONMENTS = ("live", "test")
SHORTEST_SECRET = 16
LONGEST_FLOW = 600


@dataclass(frozen=True, slots=True)
class Application:
    """One registered client at the service, as the site's settings describe it.

    ``base_url`` ends in ``/api/v1``; ``auth_url`` and ``api_origin`` carry no trailing slash.
    ``timeout`` is the total number of seconds one call may take. ``authorization_lifetime`` is the
    number of seconds between pressing the button and coming back.
    """

    alias: str
    environment: str
    base_url: str
    auth_url: str
    api_origin: str
    client_id: str
    client_secret: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    scopes: tuple[str, ...]
    connect_scopes: tuple[str, ...]
    policy: str
    encryption_keys: tuple[str, ...] = field(repr=False)
    document_keys: tuple[Mapping[str, Any], ...] = field(repr=False)
    redirect_uri: str | None
    timeout: float
    authorization_lifetime: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the setting. ``fatal``: the application cannot be used at all."""

    check_id: str
    message: str
    hint: str
    fatal: bool = True


def application(alias: str = DEFAULT_ALIAS) -> Application:
    """The application of that alias.

    Raises ``ConfigurationError`` if the alias is unknown or its settings are unusable.
    """
    fatal = [problem for problem in problems() if problem.fatal]
    if fatal:
        raise ConfigurationError(" ".join(problem.message for problem in fatal))
    if alias not in aliases():
        raise ConfigurationError(f"{SETTING} has no application {alias!r}.")
    return _application(alias)


def aliases() -> tuple[str, ...]:
    """The aliases that the site has set up, in the setting's order."""
    return tuple(_setting())


@cache
def problems() -> tuple[Problem, ...]:
    """Every mistake in the setting, in the order of the aliases."""
    raw = getattr(settings, SETTING, None)
    if not isinstance(raw, Mapping) or DEFAULT_ALIAS not in raw:
        hint = 'Add DJANGO_IDENTITY = {"default": {…}} to the settings; see the README.'
        return (Problem("E001", f'{SETTING} must be a dict with the key "default".', hint),)
    return tuple(
        problem for alias, given in raw.items() for problem in _alias_problems(alias, given)
    )


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


def _setting() -> Mapping[str, Any]:
    return getattr(settings, SETTING, None) or {}


@cache
def _application(alias: str) -> Application:
    given = {**{name: rule.default for name, rule in RULES.items()}, **_setting()[alias]}
    return Application(
        alias=alias,
        environment=given["ENVIRONMENT"],
        base_url=given["BASE_URL"].rstrip("/"),
        auth_url=given["AUTH_URL"].rstrip("/"),
        api_origin=(given["API_ORIGIN"] or origin_of(given["BASE_URL"])).rstrip("/"),
        client_id=given["CLIENT_ID"],
        client_secret=given["CLIENT_SECRET"],
        webhook_secrets=tuple(given["WEBHOOK_SECRETS"]),
        scopes=tuple(given["SCOPES"]),
        connect_scopes=tuple(given["CONNECT_SCOPES"]),
        policy=given["POLICY"],
        encryption_keys=tuple(given["ENCRYPTION_KEYS"] or _secret_keys()),
        document_keys=tuple(given["DOCUMENT_KEYS"]),
        redirect_uri=given["REDIRECT_URI"],
        timeout=float(given["TIMEOUT"]),
        authorization_lifetime=given["AUTHORIZATION_LIFETIME"],
    )


def _secret_keys() -> list[str]:
    return [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]


# What each key may hold


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(_is_text(item) for item in value)


def _is_scopes(value: object) -> bool:
    return _is_texts(value) and bool(value) and not any(" " in scope for scope in value)  # type: ignore[attr-defined]  # _is_texts proved a sequence of str


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
    "CLIENT_ID": _Rule(_is_text, "a text", required=True),
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
}


def _alias_problems(alias: str, given: object) -> Iterator[Problem]:
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


def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in (SETTING, "SECRET_KEY", "SECRET_KEY_FALLBACKS"):
        problems.cache_clear()
        _application.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_identity.conf")
