"""The setting: parsed once, complained about early."""

from typing import Any

import pytest
from django.conf import settings
from django.core.checks import Tags, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import override_settings

from django_identity import conf
from django_identity.checks import registration
from django_identity.conf import rules
from django_identity.exceptions import ConfigurationError
from tests.service.environment import environment

KEY = {"kty": "EC", "kid": "k", "alg": "ECDH-ES", "crv": "P-256", "d": "private"}
PATHS = {"documents:read": "/users/{subject}/documents"}
COMPLETE: dict[str, Any] = {
    "ENVIRONMENT": "test",
    "BASE_URL": "https://api.example.org/api/v1",
    "AUTH_URL": "https://login.example.org",
    "CLIENT_ID": "client",
    "CLIENT_SECRET": "a-secret-that-is-long-enough",
    "WEBHOOK_SECRETS": ["a-webhook-secret-that-is-long-enough"],
}


def configured(**changes: Any) -> Any:
    given = {**COMPLETE, **changes}
    return override_settings(
        DJANGO_IDENTITY={k: v for k, v in given.items() if v is not ...}
    )


def check_ids() -> set[str]:
    found = {str(message.id) for message in run_checks(tags=[Tags.security])}
    return {id_ for id_ in found if "django_identity" in id_}


def test_defaults_are_filled_in() -> None:
    """The issuer is the API's origin, unless the site names another. ``None`` is the default."""
    for given in (
        {},
        {"API_ORIGIN": None, "ENCRYPTION_KEYS": None, "REDIRECT_URI": None},
    ):
        with configured(BASE_URL="https://API.example.org:443/api/v1/", **given):
            application = conf.application()
        assert application.api_origin == "https://api.example.org"
        assert application.base_url == "https://API.example.org:443/api/v1"
        assert application.scopes == ("profile:read", "kyc:read", "claims:read")
        assert application.encryption_keys[0].reveal() == settings.SECRET_KEY


def test_plain_http_to_this_machine_is_no_warning() -> None:
    address = "http://localhost:9400"
    with configured(BASE_URL=f"{address}/api/v1", AUTH_URL=address):
        assert check_ids() == set()


def test_an_environment_that_cannot_work_is_an_error() -> None:
    """It is said at the start, and not at the first sign-in."""
    with configured(), environment(HTTPS_PROXY="ftp://user:passed@nowhere.example"):
        [found] = [
            each
            for each in run_checks(tags=[Tags.security])
            if "E014" in (each.id or "")
        ]
    assert "passed" not in f"{found}"


def test_no_secret_is_in_the_repr() -> None:
    """An application can be printed without giving away a secret."""
    with configured(ENCRYPTION_KEYS=["k" * 40], DOCUMENT_KEYS=[KEY]):
        shown = repr(conf.application())
    secrets = ("a-secret", "webhook-secret", "kkk", KEY["d"])
    assert not [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"CLIENT_ID": ...}, "E003"),
        ({"CLEINT_ID": "x"}, "E002"),
        ({"SCOPES": "profile:read"}, "E004"),
        ({"SCOPES": []}, "E004"),
        ({"ENVIRONMENT": "production"}, "E004"),
        ({"BASE_URL": "api.example.org/api/v1"}, "E004"),
        ({"BASE_URL": "https://[broken/api/v1"}, "E004"),
        ({"BASE_URL": "https://api.example.org:port/api/v1"}, "E004"),
        ({"BASE_URL": "https://user:pw@example.org/api/v1"}, "E004"),
        ({"BASE_URL": " https://api.example.org/api/v1"}, "E004"),
        ({"AUTH_URL": "https://login.example.org "}, "E004"),
        ({"AUTH_URL": "https://login.exam ple.org"}, "E004"),
        ({"CLIENT_ID": " client"}, "E004"),
        ({"CLIENT_SECRET": "a-secret-that-is-long-enough\n"}, "E004"),
        ({"WEBHOOK_SECRETS": ["a-webhook-secret-of-length "]}, "E004"),
        ({"TIMEOUT": True}, "E004"),
        ({"TIMEOUT": 0}, "E004"),
        ({"BASE_URL": "http://api.example.org/api/v1"}, "W004"),
        ({"ENVIRONMENT": "live", "AUTH_URL": "http://127.0.0.1:9"}, "E005"),
        ({"ENVIRONMENT": "live", "AUTH_URL": "HTTP://127.0.0.1:9"}, "E005"),
        ({"BASE_URL": "https://api.example.org/v1"}, "E006"),
        ({"AUTH_URL": "https://login.example.org/oauth2"}, "E006"),
        ({"AUTH_URL": "https://login.example.org/oauth2/auth"}, "E006"),
        ({"AUTH_URL": "https://login.example.org/id/oauth2/token/"}, "E006"),
        ({"API_ORIGIN": "https://api.example.org/keys"}, "E007"),
        ({"API_ORIGIN": "https://api.example.org:"}, "E007"),
        ({"API_ORIGIN": "https://api.example.org:0443"}, "E007"),
        ({"CLIENT_SECRET": "short"}, "E008"),
        ({"WEBHOOK_SECRETS": ["a-webhook-secret-of-length", "short"]}, "E008"),
        ({"EVENT_DAYS": 1}, "E004"),
        ({"DOCUMENT_KEYS": [{**KEY, "kid": ""}]}, "E004"),
        ({"DOCUMENT_KEYS": [{**KEY, "d": None}]}, "E004"),
        ({"DOCUMENT_KEYS": [{**KEY, "alg": "RSA-OAEP-256"}]}, "E004"),
        ({"DOCUMENT_KEYS": [{**KEY, "alg": "RSA1_5"}]}, "E004"),
        ({"DOCUMENT_KEYS": ["key"]}, "E004"),
        ({"DOCUMENT_KEYS": KEY}, "E004"),
        ({"DOCUMENT_PATHS": "/users/{subject}/documents"}, "E004"),
        ({"DOCUMENT_PATHS": {"documents:write": "/users/{subject}"}}, "E004"),
        ({"DOCUMENT_PATHS": {"documents:read": "/documents"}}, "E004"),
        ({"DOCUMENT_PATHS": {"documents:read": "/../{subject}"}}, "E004"),
        ({"DOCUMENT_PATHS": {"documents:read": "/{subject}/{secret}"}}, "E004"),
        (
            {"DOCUMENT_PATHS": {"documents:read": "https://example.org/{subject}"}},
            "E004",
        ),
        ({"DOCUMENT_PATHS": {"documents:read": "/users/{subject}?all=1"}}, "E004"),
        ({"SCOPES": ["openid"]}, "E019"),
        ({"SCOPES": ["kyc:read"]}, "E019"),
        ({"SCOPES": ["openid", "kyc:read"]}, "E019"),
        (
            {"SCOPES": ["kyc:read"], "LATER_SCOPES": ["profile:read", "claims:read"]},
            "E019",
        ),
        ({"SCOPES": ["profile:read", "documents:metadata"]}, "E065"),
        (
            {"SCOPES": ["profile:read", "documents:read"], "DOCUMENT_PATHS": PATHS},
            "E066",
        ),
        ({"POLICY": "no.such.Policy"}, "E010"),
        ({"POLICY": "django_identity.conf.Application"}, "E010"),
    ],
)
def test_every_mistake_has_a_check(changes: dict[str, Any], expected: str) -> None:
    """A mistake in the setting is a system check error with its own id."""
    with configured(**changes):
        assert check_ids() == {f"django_identity.{expected}"}


def test_a_scope_of_documents_is_named_with_its_list() -> None:
    """What is asked for later is no less asked for; the hint has what to set."""
    for scopes in ("SCOPES", "LATER_SCOPES"):
        asked = {"SCOPES": ["profile:read"], scopes: ["profile:read", "documents:read"]}
        with configured(**asked):
            found = {each.id: each for each in run_checks(tags=[Tags.security])}
        for number, needed in (("E065", "DOCUMENT_PATHS"), ("E066", "DOCUMENT_KEYS")):
            mistake = found[f"django_identity.{number}"]
            assert f"{scopes} has documents:read" in mistake.msg
            assert f"Set {needed}" in str(mistake.hint)


def test_document_keys_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without joserfc no document would open; with it the keys are fine."""
    with configured(DOCUMENT_KEYS=[KEY]):
        assert check_ids() == set()
        monkeypatch.setattr(registration, "find_spec", lambda _name: None)
        assert check_ids() == {"django_identity.E067"}


@pytest.mark.parametrize("setting", [None, [], "x", 7], ids=repr)
def test_the_setting_is_a_dict(setting: object) -> None:
    """Else there is one error, not a crash; it is Django's own too."""
    with override_settings(DJANGO_IDENTITY=setting):
        assert check_ids() == {"django_identity.E001"}
        with pytest.raises(ConfigurationError) as raised:
            conf.application()
    assert isinstance(raised.value, ImproperlyConfigured)


@pytest.mark.parametrize(
    "setting",
    [
        {"default": COMPLETE},
        {"default": {}},
        {"default": COMPLETE, "second": COMPLETE},
        {"brand": COMPLETE},
        {**COMPLETE, "default": COMPLETE},
    ],
    ids=["one", "empty", "two", "another name", "beside the keys"],
)
def test_an_entry_for_each_application_is_one_mistake(setting: object) -> None:
    """It says how the setting is written, and not that each key is missing."""
    with override_settings(DJANGO_IDENTITY=setting):
        [problem] = conf.problems()
        assert problem.check_id == "E001"
        assert 'DJANGO_IDENTITY = {"ENVIRONMENT": "test"' in problem.hint
        with pytest.raises(ConfigurationError):
            conf.application()


@pytest.mark.parametrize(
    "key", [{"CLEINT_ID": "x"}, {"DOCUMENT_PATH": {"documents:read": "/{subject}"}}]
)
def test_an_unknown_key_is_named(key: dict[str, Any]) -> None:
    with configured(**key):
        assert check_ids() == {"django_identity.E002"}


def test_a_short_secret_is_reported_but_usable() -> None:
    """A development stand-in with a short secret still runs, with an error in the checks."""
    with configured(CLIENT_SECRET="short"):
        assert conf.application().client_secret.reveal() == "short"


@pytest.mark.parametrize(
    ("setting", "value", "number"),
    [
        # Without the backend nobody would stay signed in.
        (
            "AUTHENTICATION_BACKENDS",
            ["django.contrib.auth.backends.ModelBackend"],
            "E009",
        ),
        # The callback address must not follow a forged Host header; a wildcard domain is open too.
        ("ALLOWED_HOSTS", ["site.example.org", "*"], "W001"),
        ("ALLOWED_HOSTS", ["site.example.org", ".example.org"], "W001"),
        ("ALLOWED_HOSTS", [".co.uk"], "W001"),
        ("IDENTITY_LOCAL_SIGN_IN_URL", " ", "E012"),
        ("IDENTITY_LOCAL_SIGN_IN_URL", "no-such-page", "E012"),
        ("IDENTITY_LOCAL_SIGN_IN_URL", "", ""),
        ("IDENTITY_LOCAL_SIGN_IN_URL", None, ""),
        ("IDENTITY_LOCAL_SIGN_IN_URL", "local-login", ""),
        ("IDENTITY_LOCAL_SIGN_IN_URL", "https://login.example.org/", ""),
    ],
)
def test_a_setting_of_django(setting: str, value: object, number: str) -> None:
    """A host is no matter where the callback is fixed."""
    with override_settings(**{setting: value}):
        assert check_ids() == ({f"django_identity.{number}"} if number else set())
        with configured(REDIRECT_URI="https://site.example.org/identity/callback/"):
            assert bool(check_ids()) is number.startswith("E")


@pytest.mark.parametrize(
    ("vendor", "options", "is_reported"),
    [
        ("postgresql", {}, False),
        ("mysql", {}, False),
        ("sqlite", {"transaction_mode": "IMMEDIATE"}, False),
        ("sqlite", {"timeout": 20}, True),
    ],
)
def test_sqlite_without_a_lock_at_the_beginning_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    options: dict[str, Any],
    *,
    is_reported: bool,
) -> None:
    """A transaction that reads first would fail at once beside another writer."""
    database = connections["default"]
    monkeypatch.setattr(database, "vendor", vendor)
    monkeypatch.setitem(database.settings_dict, "OPTIONS", options)
    assert check_ids() == ({"django_identity.W003"} if is_reported else set())


def test_loopback_is_this_machine_only() -> None:
    """A name that merely begins like loopback is not loopback."""
    hosts = ("127.0.0.1", "127.9.9.9", "::1", "localhost")
    others = ("127.0.0.1.example.org", "localhost.example.org", "10.0.0.1", "", None)
    assert [host for host in (*hosts, *others) if rules.is_loopback(host)] == [*hosts]


def test_live_cookies_are_secure() -> None:
    """A cookie without ``Secure`` goes over plain http as well; in test that is nobody's harm."""
    secure = {"SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True}
    with configured(
        ENVIRONMENT="live", ENCRYPTION_KEYS=["a-key-of-its-own-long-enough"]
    ):
        assert check_ids() == {"django_identity.E011"}
        for setting in secure:
            with override_settings(**{**secure, setting: False}):
                assert check_ids() == {"django_identity.E011"}
        with override_settings(**secure):
            assert check_ids() == set()
