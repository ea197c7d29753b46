"""The keys of ``DJANGO_IDENTITY`` with their parsers, and all mistakes that the keys may have."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

SETTING = "DJANGO_IDENTITY"
SHORTEST_SECRET = 16
SHORTEST_SPAN, LONGEST_SPAN = timedelta(hours=1), timedelta(days=366)
HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
# A colon ends the client id in Basic credentials (RFC 7617 §2).
CLIENT_ID = "[^:]+"
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


def may_be_plain(host: str | None, environment: str, named: Collection[str] = ()) -> bool:
    """Whether plain http to ``host`` is allowed: to this machine and the ``named``, not in live."""
    return environment != "live" and (is_loopback(host) or host in named)


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


def _matching(pattern: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        found = re.fullmatch(pattern, _text(value))
        if found is None:
            raise ValueError
        return found[0]

    return parse


def _list(value: object) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    return tuple(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _hosts(value: object) -> tuple[str, ...]:
    return tuple(map(_matching(HOST), (host.lower() for host in _texts(value))))


def _scopes(value: object) -> tuple[str, ...]:
    scopes = tuple(map(_matching("[^ ]+"), _list(value)))
    if not scopes:
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


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 60:
        raise ValueError
    return float(value)


def _whole(most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
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


def _document_keys(value: object) -> tuple[Mapping[str, Any], ...]:
    """Private JWKs, each with a ``kid`` of its own and one algorithm (RFC 8725 §3.1)."""
    keys = _list(value)
    if not all(isinstance(key, Mapping) and _is_document_key(key) for key in keys):
        raise ValueError
    if len({key["kid"] for key in keys}) < len(keys):
        raise ValueError
    return keys


def _is_document_key(key: Mapping[str, Any]) -> bool:
    texts = [key.get(name) for name in ("kid", "alg", "kty", "d")]
    is_complete = all(isinstance(text, str) and text for text in texts)
    return is_complete and DOCUMENT_ALGORITHMS.get(key["alg"]) == key["kty"]


def _document_paths(value: object) -> Mapping[str, str]:
    """Paths below ``BASE_URL``, each with ``{subject}`` once."""
    if not isinstance(value, Mapping) or not value.keys() <= DOCUMENT_SCOPES:
        raise ValueError
    for path in value.values():
        if not DOCUMENT_PATH.fullmatch(_text(path)):
            raise ValueError
    return dict(value)


def document_paths_of(environment: object) -> Mapping[str, str]:
    """The default of ``DOCUMENT_PATHS``: the sandbox's in test, and none in live."""
    return {} if environment == "live" else SANDBOX_DOCUMENT_PATHS


def _or_none(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


@dataclass(frozen=True, slots=True)
class Rule:
    """One key: its parser, a description of valid values, and its default."""

    parse: Callable[[Any], Any]
    wanted: str
    default: Any = None
    required: bool = False


# Scopes of documents, and the paths at which the sandbox serves them. The spec shows no path.
SANDBOX_DOCUMENT_PATHS: Mapping[str, str] = {
    "documents:metadata": "/users/{subject}/documents/metadata",
    "documents:read": "/users/{subject}/documents",
}
DOCUMENT_SCOPES = SANDBOX_DOCUMENT_PATHS.keys()
DOCUMENT_PATH = re.compile(r"(?:/\w[\w.~-]*)*/\{subject\}(?:/\w[\w.~-]*)*", re.ASCII)
# Algorithm -> the type of its keys.
DOCUMENT_ALGORITHMS = {"RSA-OAEP-256": "RSA", "ECDH-ES": "EC", "ECDH-ES+A256KW": "EC"}
PRIVATE_JWKS = f"a list of private JWKs, each with kid and alg ({', '.join(DOCUMENT_ALGORITHMS)})"
PATHS = "a dict from documents:metadata and documents:read to paths with {subject}, or None"
POLICY = "django_identity.policy.IdentityPolicy"
SCOPES = ("profile:read", "kyc:read", "claims:read")
# Answers for these scopes name the person. The token answer may not.
NAMING_SCOPES = frozenset(SCOPES)
CONNECT_SCOPES = ("profile:basic", "kyc:status")
SERVICE_NAME = "identity"
CALLBACK = "the registered callback address, or None"
STARTS = "a number of sign-ins in ten minutes, or None"
ADDRESSES = ("BASE_URL", "AUTH_URL", "API_ORIGIN", "REDIRECT_URI", "SERVICE_ACCOUNT_URL")
#: The handlers of an event are retried for about a day.
LONGEST_RETRY_DAYS = 2
SPAN = "a datetime.timedelta from an hour to a year"

RULES: Mapping[str, Rule] = {
    "ENVIRONMENT": Rule(_matching("live|test"), '"live" or "test"', required=True),
    "BASE_URL": Rule(_base, "an http(s) address that ends in /api/v1", required=True),
    "AUTH_URL": Rule(_base, "an http(s) address", required=True),
    "API_ORIGIN": Rule(_or_none(_base), "an http(s) address without a path, or None"),
    "CLIENT_ID": Rule(_matching(CLIENT_ID), "a text without a colon", required=True),
    "CLIENT_SECRET": Rule(_text, "a text", required=True),
    "WEBHOOK_SECRETS": Rule(_texts, "a list of texts", default=()),
    "SCOPES": Rule(_scopes, "a list of scopes", default=SCOPES),
    "CONNECT_SCOPES": Rule(_scopes, "a list of scopes", default=CONNECT_SCOPES),
    "POLICY": Rule(_text, "a dotted path", default=POLICY),
    "ENCRYPTION_KEYS": Rule(_or_none(_texts), "a list of texts, or None"),
    "DOCUMENT_KEYS": Rule(_document_keys, PRIVATE_JWKS, default=()),
    "DOCUMENT_PATHS": Rule(_or_none(_document_paths), PATHS),
    "REDIRECT_URI": Rule(_or_none(_address), CALLBACK),
    "TIMEOUT": Rule(_seconds, "a number of seconds up to 60", default=10.0),
    "CALLBACK_SECONDS": Rule(_seconds, "a number of seconds up to 60", default=20.0),
    "RATE_LIMIT": Rule(_or_none(_rate), 'calls a second or minute, as "50/s"', default="50/s"),
    "REFETCH_THREADS": Rule(_whole(32), "a number from 1 to 32", default=4),
    "STARTS_PER_BROWSER": Rule(_or_none(_whole(10**6)), STARTS, default=20),
    "STARTS_PER_ADDRESS": Rule(_or_none(_whole(10**6)), STARTS, default=300),
    "EVENT_PAYLOAD_DAYS": Rule(_whole(3650), "a number of days", default=30),
    "EVENT_DAYS": Rule(_whole(3650), "a number of days", default=180),
    "REVOKED_DAYS": Rule(_whole(3650), "a number of days", default=90),
    "KYC_HOLDS": Rule(_span, SPAN, default=timedelta(hours=48)),
    "CONNECT_KYC_HOLDS": Rule(_span, SPAN, default=timedelta(days=30)),
    "SERVICE_NAME": Rule(_text, "a text", default=SERVICE_NAME),
    "SERVICE_ACCOUNT_URL": Rule(_or_none(_address), "an http(s) address, or None"),
    "INSECURE_TEST_HOSTS": Rule(_hosts, "a list of host names", default=()),
    "CA_FILE": Rule(_or_none(_text), "the path of a PEM file, or None"),
    "PROXY": Rule(_or_none(_text), 'an address as "http://proxy.example:3128", or None'),
}


def parse_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parsed value of each key, by its name in lower case. Raises ``ValueError``."""
    return {name.lower(): rule.parse(given.get(name, rule.default)) for name, rule in RULES.items()}


def alias_problems(alias: str, given: object) -> Iterator[Problem]:
    """All mistakes in the settings of one application: of each key, then of the valid values."""
    where = f"{SETTING}[{alias!r}]"
    if not isinstance(given, Mapping):
        yield Problem("E001", f"{where} must be a dict.", "See the settings in the documentation.")
        return
    for name in given.keys() - RULES.keys():
        yield Problem("E002", f"{where} has an unknown key {name!r}.", "Check the spelling.")
    unusable = [*_key_problems(where, given)]
    yield from unusable
    if not unusable:
        yield from _value_problems(where, parse_fields(given))


def _key_problems(where: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    for name, rule in RULES.items():
        if name not in given:
            if rule.required:
                yield Problem("E003", f"{where} lacks {name}.", f"Set it to {rule.wanted}.")
            continue
        try:
            rule.parse(given[name])
        except ValueError:
            yield Problem("E004", f"{where}: {name} is invalid.", f"It must be {rule.wanted}.")


def _value_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _address_problems(where, fields)
    for name in ("CLIENT_SECRET", "WEBHOOK_SECRETS", "ENCRYPTION_KEYS"):
        held = fields[name.lower()] or ()
        secrets = [held] if isinstance(held, str) else held
        if any(len(secret) < SHORTEST_SECRET for secret in secrets):
            hint = f"Use at least {SHORTEST_SECRET} random characters."
            yield Problem("E008", f"{where}: {name} is too short to be safe.", hint, fatal=False)
    if not NAMING_SCOPES & {*fields["scopes"]}:
        hint = f"Add one of {', '.join(sorted(NAMING_SCOPES))}."
        problem = f"{where}: with these SCOPES no answer of the service names the person."
        yield Problem("E019", problem, hint, fatal=False)
    yield from _document_problems(where, fields)
    if fields["ca_file"] and not _has_certificates(fields["ca_file"]):
        hint = "It must be a file of PEM certificates that the site's processes can read."
        yield Problem("E014", f"{where}: CA_FILE contains no usable certificate.", hint)
    if fields["proxy"] and not _is_proxy(fields["proxy"]):
        hint = "Its form is http://[user:password@]host:port. TLS passes through it unchanged."
        yield Problem("E015", f"{where}: PROXY is not the address of a proxy.", hint)
    days, payload_days = fields["event_days"], fields["event_payload_days"]
    if days < payload_days:
        hint = "A purged event loses its payload first, and the rest later."
        problem = f"{where}: EVENT_DAYS is smaller than EVENT_PAYLOAD_DAYS."
        yield Problem("E030", problem, hint, fatal=False)
    if min(days, payload_days) < LONGEST_RETRY_DAYS:
        hint = f"Set both to {LONGEST_RETRY_DAYS} days or more."
        problem = f"{where}: events are emptied before the last retry of their handlers."
        yield Problem("E031", problem, hint, fatal=False)


def _address_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    environment, plain_hosts = fields["environment"], fields["insecure_test_hosts"]
    for name in ADDRESSES:
        parts = urlsplit(fields[name.lower()] or "https:")
        if parts.scheme != "https" and not may_be_plain(parts.hostname, environment, plain_hosts):
            hint = (
                "Use https. Plain http is allowed only for loopback addresses and "
                "INSECURE_TEST_HOSTS, and never in live."
            )
            yield Problem("E005", f"{where}: {name} is not an https address.", hint)
    if plain_hosts and environment == "live":
        hint = "Remove it: a live application speaks to the service over https alone."
        yield Problem("E055", f"{where}: INSECURE_TEST_HOSTS is set in live.", hint)
    if not fields["base_url"].endswith("/api/v1"):
        hint = "The API version is part of the address. Add /api/v1."
        yield Problem("E006", f"{where}: BASE_URL does not end in /api/v1.", hint)
    if fields["api_origin"] and fields["api_origin"] != origin_of(fields["api_origin"]):
        hint = "It is scheme and host without a path, and is compared with a credential's issuer."
        yield Problem("E007", f"{where}: API_ORIGIN is not a plain origin.", hint)


def _document_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    """A person must not consent to what the site then cannot read."""
    scopes, paths = DOCUMENT_SCOPES & {*fields["scopes"]}, fields["document_paths"]
    if paths is None:
        paths = document_paths_of(fields["environment"])
    for scope in sorted(scopes - {*paths}):
        hint = "Set the path that the service named at the approval, or leave the scope out."
        problem = f"{where}: SCOPES has {scope}, and DOCUMENT_PATHS has no path for it."
        yield Problem("E065", problem, hint, fatal=False)
    if "documents:read" in scopes and not fields["document_keys"]:
        hint = "Set DOCUMENT_KEYS, or leave the scope out."
        problem = f"{where}: SCOPES has documents:read, and no key would open a document."
        yield Problem("E066", problem, hint, fatal=False)


def _has_certificates(path: str) -> bool:
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError):  # an ``SSLError`` is an ``OSError``
        return False
    return True


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value)
        has_port = parts.port is not None
    except ValueError:
        return False
    has_more = parts.query or parts.fragment or parts.path not in ("", "/")
    return parts.scheme == "http" and bool(parts.hostname) and has_port and not has_more
