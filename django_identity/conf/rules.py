"""The keys of ``DJANGO_IDENTITY`` with their parsers, and all mistakes that the keys may have."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django_identity.conf.parsers import (
    DOCUMENT_SCOPES,
    MEMBER_PATH,
    PATHS,
    PRIVATE_JWKS,
    Parser,
    address,
    base,
    between,
    document_key,
    list_of,
    matching,
    paths_of_documents,
    secret,
    text,
)
from django_identity.secrets import Secret
from django_identity.strict_json import JSONObject

SETTING = "DJANGO_IDENTITY"
SHORTEST_SECRET = 16
Scopes = tuple[str, ...]
#: What the site has written.
Settings = Mapping[str, Any]
REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the setting. ``fatal``: the application is unusable."""

    check_id: str
    message: str
    hint: str
    fatal: bool = True


#: What one check finds.
Problems = Iterator[Problem]


def is_loopback(host: str | None) -> bool:
    """Whether ``host`` names this machine: ``localhost``, ``127.0.0.0/8`` or ``::1``."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def origin_of(url: str) -> str:
    """Scheme, host and port of ``url`` (RFC 6454); a default port is left out."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = ""
    if parts.port not in (None, default):
        port = f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


CLAIMS_SCOPE = "claims:read"
KYC_SCOPE = "kyc:read"
NAMING_SCOPES = ("profile:read", CLAIMS_SCOPE)
SCOPES = ("profile:read", KYC_SCOPE, CLAIMS_SCOPE)
SERVICE_NAME = "identity"
ADDRESSES = (
    "BASE_URL",
    "AUTH_URL",
    "API_ORIGIN",
    "REDIRECT_URI",
    "SERVICE_ACCOUNT_URL",
)
OF_AUTH_URL = ("/oauth2", "/oauth2/auth", "/oauth2/token")
TEXT = "a text without white space around it"
TEXTS = "a list of texts without white space around them"
_HOLDS = between(timedelta(hours=1), timedelta(days=366), timedelta)
_scopes = list_of(matching("[^ ]+"), least=1)


@dataclass(frozen=True, slots=True)
class Rule:
    """One key: its parser, a description of valid values, and its default.

    A key whose default is None may be None.
    """

    parse: Parser
    wanted: str
    default: Any = REQUIRED


def _key(parser: Parser, wanted: str, default: Any = REQUIRED, **options: Any) -> Any:
    """A field of ``Application``, which is a key of the setting with its rule."""
    return field(metadata={"rule": Rule(parser, wanted, default)}, **options)


@dataclass(frozen=True, slots=True)
class Application:
    """The site's registration at the service, and what else the settings say about it.

    ``base_url`` ends in ``/api/v1``; of ``auth_url`` and ``api_origin`` the trailing slash is cut.
    ``timeout``: the seconds one call may take. ``later_scopes``: what only a gate asks for.
    ``keep_claims``: what is stored, None for all. ``kyc_holds``: how long a KYC level counts after
    the service last confirmed it; ``service_name``: the service's name for people;
    ``service_account_url``: their account there. ``event_subject_paths``: where an event may name
    its person, beside ``user_id`` in its data. ``document_paths``: scope of documents -> the path
    that serves it, below ``base_url``.
    """

    # The registration
    environment: str = _key(matching("live|test"), '"live" or "test"')
    base_url: str = _key(base, "an http(s) address that ends in /api/v1")
    auth_url: str = _key(base, "an http(s) address")
    api_origin: str = _key(base, "an http(s) address without a path, or None", None)
    # A colon ends the client id in Basic credentials (RFC 7617 §2).
    client_id: str = _key(matching("[^:]+"), f"{TEXT} and without a colon")
    client_secret: Secret = _key(secret, TEXT)
    redirect_uri: str | None = _key(
        address,
        "the registered callback address, or None",
        None,
    )
    timeout: float = _key(
        between(0.001, 60, int, float),
        "a number of seconds up to 60",
        10.0,
    )

    # What is asked for
    scopes: Scopes = _key(_scopes, "a list of scopes", SCOPES)
    later_scopes: Scopes = _key(list_of(matching("[^ ]+")), "a list of scopes", ())
    connect_scopes: Scopes = _key(
        _scopes,
        "a list of scopes",
        ("profile:basic", "kyc:status"),
    )
    keep_claims: tuple[str, ...] | None = _key(
        list_of(matching("[^ =]+"), least=1),
        "a list of claims, or None",
        None,
    )
    kyc_holds: timedelta = _key(
        _HOLDS,
        "a timedelta from an hour to a year",
        timedelta(hours=48),
    )

    # The site
    policy: str = _key(text, "a dotted path", "django_identity.policy.IdentityPolicy")
    service_name: str = _key(text, TEXT, SERVICE_NAME)
    service_account_url: str | None = _key(address, "an http(s) address, or None", None)

    # Events
    webhook_secrets: tuple[Secret, ...] = _key(list_of(secret), TEXTS, ())
    event_subject_paths: tuple[str, ...] = _key(
        list_of(matching(MEMBER_PATH)),
        "a list of paths such as data.user.id",
        ("data.user.user_id", "data.user.id", "user_id"),
    )
    # The handlers of an event are retried within a day.
    event_days: int = _key(
        between(2, 3650, int),
        "a whole number of days from 2 to 3,650",
        180,
    )

    # Storage and upkeep
    encryption_keys: tuple[Secret, ...] = _key(
        list_of(secret),
        f"{TEXTS}, or None",
        None,
    )
    refetches_per_minute: int = _key(
        between(1, 1_000_000, int),
        "a whole number up to 1,000,000",
        1000,
    )

    # Documents
    document_keys: tuple[JSONObject, ...] = _key(
        list_of(document_key),
        PRIVATE_JWKS,
        (),
        repr=False,
    )
    document_paths: Mapping[str, str] = _key(paths_of_documents, PATHS, {})


RULES: Mapping[str, Rule] = {
    attribute.name.upper(): attribute.metadata["rule"]
    for attribute in fields(Application)
    if attribute.metadata
}


def parse(settings: Settings) -> Application:
    """The application of these settings. Raises ``KeyError`` or ``ValueError``."""
    parsed = {name.lower(): _value(name, settings) for name in RULES}
    parsed["api_origin"] = parsed["api_origin"] or origin_of(parsed["base_url"])
    return Application(**parsed)


def _value(name: str, settings: Settings) -> Any:
    """The parsed value of one key. ``KeyError``: it is missing. ``ValueError``: it is invalid."""
    rule = RULES[name]
    value = settings.get(name, rule.default)
    if value is REQUIRED:
        raise KeyError(name)
    if value is None and rule.default is None:
        return None
    return rule.parse(value)


def problems(settings: object) -> Problems:
    """All mistakes in the setting: of its keys, else of their values."""
    if not isinstance(settings, Mapping):
        hint = 'Add DJANGO_IDENTITY = {"ENVIRONMENT": "test", …}; see the README.'
        yield Problem("E001", f"{SETTING} must be a dict.", hint)
        return
    unknown = settings.keys() - RULES.keys()
    for name in unknown:
        if _is_entry(name, settings[name]):
            hint = (
                'Write the keys in one flat dict: DJANGO_IDENTITY = {"ENVIRONMENT": "test", …}.'
                " Another environment or brand is a site of its own."
            )
            yield Problem("E001", f"{SETTING} has a dict of settings in it.", hint)
            return
    for name in unknown:
        yield Problem(
            "E002",
            f"{SETTING} has an unknown key {name!r}.",
            "Check the spelling.",
        )
    wrong = tuple(_key_problems(settings))
    yield from wrong or _value_problems(parse(settings))


def _is_entry(name: object, value: object) -> bool:
    """Whether ``value`` has the settings of a site, under a name of their own."""
    if not isinstance(value, Mapping):
        return False
    return name == "default" or not value.keys().isdisjoint(RULES)


def _key_problems(settings: Settings) -> Problems:
    for name, rule in RULES.items():
        try:
            _value(name, settings)
        except KeyError:
            yield Problem(
                "E003",
                f"{SETTING} lacks {name}.",
                f"Set it to {rule.wanted}.",
            )
        except ValueError:
            yield Problem(
                "E004",
                f"{SETTING}: {name} is invalid.",
                f"It must be {rule.wanted}.",
            )


def _value_problems(application: Application) -> Problems:
    yield from _address_problems(application)
    for name in ("CLIENT_SECRET", "WEBHOOK_SECRETS", "ENCRYPTION_KEYS"):
        secrets = getattr(application, name.lower()) or ()
        if isinstance(secrets, Secret):
            secrets = [secrets]
        if any(len(secret.reveal()) < SHORTEST_SECRET for secret in secrets):
            hint = f"Use at least {SHORTEST_SECRET} random characters."
            yield Problem(
                "E008",
                f"{SETTING}: {name} is too short to be safe.",
                hint,
                fatal=False,
            )
    yield from _naming_problems(application)
    yield from _document_problems(application)


def _naming_problems(application: Application) -> Problems:
    """A sign-in must learn who the person is.

    The spec shows the subject in the answers for profile and claims. It shows none in the token
    answer and in the KYC answer, so with ``kyc:read`` alone only a service that says more than the
    spec can sign people in.
    """
    if {*application.scopes} & {*NAMING_SCOPES}:
        return
    yield Problem(
        "E019",
        f"{SETTING}: with these SCOPES no answer of the service is sure to name the person.",
        f"Add {' or '.join(NAMING_SCOPES)}. If the token answer names the person, silence E019.",
        fatal=False,
    )


def _address_problems(application: Application) -> Problems:
    for name in ADDRESSES:
        parts = urlsplit(getattr(application, name.lower()) or "")
        if parts.scheme == "http" and application.environment == "live":
            hint = "Use https. Plain http is for the test environment alone."
            yield Problem("E005", f"{SETTING}: {name} is not an https address.", hint)
    if not application.base_url.endswith("/api/v1"):
        hint = "The API version is part of the address. Add /api/v1."
        yield Problem("E006", f"{SETTING}: BASE_URL does not end in /api/v1.", hint)
    for ending in OF_AUTH_URL:
        if application.auth_url.endswith(ending):
            hint = f"Set AUTH_URL = {application.auth_url.removesuffix(ending)!r}."
            message = (
                f"{SETTING}: AUTH_URL ends in {ending}, which the package adds itself."
            )
            yield Problem("E006", message, hint)
    if application.api_origin != origin_of(application.api_origin):
        hint = "It is scheme and host without a path, and is compared with a credential's issuer."
        yield Problem("E007", f"{SETTING}: API_ORIGIN is not a plain origin.", hint)


def _document_problems(application: Application) -> Problems:
    """A person would consent to what stays unreadable for the site."""
    lists = {"LATER_SCOPES": application.later_scopes, "SCOPES": application.scopes}
    asked_in = {scope: name for name, scopes in lists.items() for scope in scopes}
    for scope in sorted(
        DOCUMENT_SCOPES & asked_in.keys() - application.document_paths.keys(),
    ):
        hint = (
            f"Set DOCUMENT_PATHS, with the path that the service named for {scope} when it "
            f"approved the application, or take the scope out of {asked_in[scope]}."
        )
        problem = (
            f"{SETTING}: {asked_in[scope]} has {scope}, and DOCUMENT_PATHS has no path for it: "
            "people would consent to what the site cannot read."
        )
        yield Problem("E065", problem, hint, fatal=False)
    if "documents:read" in asked_in and not application.document_keys:
        hint = (
            "Set DOCUMENT_KEYS to the private key whose public part the service has, or take the "
            f"scope out of {asked_in['documents:read']}. documents:metadata needs no key."
        )
        problem = (
            f"{SETTING}: {asked_in['documents:read']} has documents:read, and DOCUMENT_KEYS has no "
            "key: no document would open."
        )
        yield Problem("E066", problem, hint, fatal=False)
