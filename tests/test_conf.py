"""The setting, as it is parsed."""

from typing import Any

import pytest
from django.conf import settings
from django.core.checks import Tags, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_identity import conf
from django_identity.conf import rules
from django_identity.exceptions import ConfigurationError

KEY = {"kty": "EC", "kid": "k", "alg": "ECDH-ES", "crv": "P-256", "d": "private"}
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
        DJANGO_IDENTITY={k: v for k, v in given.items() if v is not ...},
    )


def check_ids() -> set[str]:
    found = {str(message.id) for message in run_checks(tags=[Tags.security])}
    return {id_ for id_ in found if "django_identity" in id_}


DEFAULTS = {
    "api_origin": "https://api.example.org",
    "scopes": ("profile:read", "kyc:read", "claims:read"),
    "connect_scopes": ("profile:basic", "kyc:status"),
    "policy": "django_identity.policy.IdentityPolicy",
    "document_keys": (),
    "document_paths": {},
    "redirect_uri": None,
    "timeout": 10.0,
    "event_days": 180,
}


NONE = {"API_ORIGIN": None, "ENCRYPTION_KEYS": None, "REDIRECT_URI": None}


@pytest.mark.parametrize("given", [{}, NONE])
def test_defaults_are_filled_in(given):
    """The issuer is the API's origin, unless the site names another. ``None`` is the default."""
    with configured(BASE_URL="https://API.example.org:443/api/v1/", **given):
        application = conf.application()
    assert {name: getattr(application, name) for name in DEFAULTS} == DEFAULTS
    assert application.base_url == "https://API.example.org:443/api/v1"
    [key] = application.encryption_keys
    assert key.reveal() == settings.SECRET_KEY


def test_no_secret_is_in_the_repr():
    with configured(ENCRYPTION_KEYS=["k" * 40], DOCUMENT_KEYS=[KEY]):
        shown = repr(conf.application())
    secrets = ("a-secret", "webhook-secret", "kkk", KEY["d"])
    assert not [secret for secret in secrets if secret in shown]


NO_DICT = {
    "None": None,
    "a list": [],
    "a text": "x",
    "a number": 7,
    "an application by name": {"default": COMPLETE},
    "an empty one": {"default": {}},
    "two": {"default": COMPLETE, "second": COMPLETE},
    "another name": {"brand": COMPLETE},
    "beside the keys": {**COMPLETE, "default": COMPLETE},
}


@pytest.mark.parametrize("setting", NO_DICT.values(), ids=NO_DICT)
def test_the_setting_is_one_dict(setting):
    """Else there is one error that says how it is written, not a crash; it is Django's own too."""
    with override_settings(DJANGO_IDENTITY=setting):
        assert check_ids() == {"django_identity.E001"}
        [problem] = conf.problems()
        assert 'DJANGO_IDENTITY = {"ENVIRONMENT": "test"' in problem.hint
        with pytest.raises(ConfigurationError) as raised:
            conf.application()
    assert isinstance(raised.value, ImproperlyConfigured)


def test_a_short_secret_is_reported_but_usable():
    """A development stand-in with a short secret still runs, with an error in the checks."""
    with configured(CLIENT_SECRET="short"):
        assert conf.application().client_secret.reveal() == "short"


def test_loopback_is_this_machine_only():
    """A name that merely begins like loopback is not loopback."""
    hosts = ("127.0.0.1", "127.9.9.9", "::1", "localhost")
    others = ("127.0.0.1.example.org", "localhost.example.org", "10.0.0.1", "", None)
    assert [host for host in (*hosts, *others) if rules.is_loopback(host)] == [*hosts]
