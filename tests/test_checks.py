"""Each mistake of the settings is a check with its own id and a hint."""

from typing import Any

import pytest
from django.apps import AppConfig
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.contrib.auth.models import User
from django.core.checks import Tags, run_checks
from django.db import connections, models
from django.test import override_settings
from django.urls import include, path
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from django_identity.checks import gates, registration
from django_identity.models import LinkedIdentity, StoredClaim
from django_identity.policy import IdentityPolicy
from django_identity.sandbox import sandbox_application
from tests import urls as root_urls
from tests.service.environment import environment
from tests.test_conf import COMPLETE, KEY, check_ids, configured

# From 6.1 on, Django's own checks ask the database.
pytestmark = pytest.mark.django_db

LIVE = {
    "ENVIRONMENT": "live",
    "ENCRYPTION_KEYS": ["a-key-of-its-own-that-is-long-enough"],
}
SECURE = override_settings(SESSION_COOKIE_SECURE=True, CSRF_COOKIE_SECURE=True)
SANDBOX = sandbox_application()
OWN = {**COMPLETE, **LIVE}
PATHS = {"documents:read": "/users/{subject}/documents"}


class Cachalot(AppConfig):
    """What a check can see of django-cachalot."""

    name = "tests.deliveries"
    label = "cachalot"


class Conf:
    """An URLconf is anything with ``urlpatterns``."""

    def __init__(self, *patterns: object) -> None:
        self.urlpatterns = patterns


OURS = path("identity/", include("django_identity.urls"))
#: Our addresses follow the visitor's language, each in another way.
FOLLOWING = [
    Conf(*i18n_patterns(OURS)),
    Conf(*i18n_patterns(OURS, prefix_default_language=False)),
    Conf(
        path(format_lazy("{}/", gettext_lazy("Yes")), include("django_identity.urls")),
    ),
]
OTHERS_FOLLOW = Conf(OURS, *i18n_patterns(path("", root_urls.home)))


class Tears:
    """A router that sends one model elsewhere."""

    def __init__(self, model: type[models.Model]) -> None:
        self.torn = model

    def db_for_write(self, model: Any, **_hints: Any) -> str | None:
        return "elsewhere" if model is self.torn else None


def of_the_site(*pages: str) -> dict[str, object]:
    """The site's own addresses, in a namespace with our name, before ours."""
    views = [path(f"{page}/", root_urls.home, name=page) for page in pages]
    return {"ROOT_URLCONF": Conf(path("own/", include((views, "identity"))), OURS)}


def csp(sources: object, *, is_sent: bool = True) -> dict[str, object]:
    """Django's policy for forms, and the middleware that sends it."""
    sends = ["django.middleware.csp.ContentSecurityPolicyMiddleware"] * is_sent
    return {
        "SECURE_CSP": {"default-src": ["'self'"], "form-action": sources},
        "MIDDLEWARE": [*settings.MIDDLEWARE, *sends],
    }


def cachalot(**more: object) -> dict[str, object]:
    return listing("INSTALLED_APPS", f"{__name__}.Cachalot") | more


def listing(setting: str, entry: str) -> dict[str, object]:
    return {setting: [*getattr(settings, setting), entry]}


#: A setting of the application, and what is no value of it.
NO_VALUES: dict[str, list[Any]] = {
    "SCOPES": ["profile:read", []],
    "ENVIRONMENT": ["production"],
    "BASE_URL": [
        "api.example.org/api/v1",
        "https://[broken/api/v1",
        " https://api.example.org/api/v1",
        "https://api.example.org:port/api/v1",
        "https://user:pw@example.org/api/v1",
    ],
    "AUTH_URL": ["https://login.example.org ", "https://login.exam ple.org"],
    "CLIENT_ID": [" client"],
    "CLIENT_SECRET": ["a-secret-that-is-long-enough\n"],
    "WEBHOOK_SECRETS": [["a-webhook-secret-of-length "]],
    "TIMEOUT": [True, 0],
    "EVENT_DAYS": [1],
    "DOCUMENT_KEYS": [
        [{**KEY, "kid": ""}],
        [{**KEY, "d": None}],
        [{**KEY, "alg": "RSA-OAEP-256"}],
        [{**KEY, "alg": "RSA1_5"}],
        ["key"],
        KEY,
    ],
    "DOCUMENT_PATHS": [
        "/users/{subject}/documents",
        {"documents:write": "/users/{subject}"},
        *(
            {"documents:read": path}
            for path in (
                "/documents",
                "/../{subject}",
                "/{subject}/{secret}",
                "https://example.org/{subject}",
                "/users/{subject}?all=1",
            )
        ),
    ],
}
#: What is changed of a complete application, and the check that reports it.
OF_THE_APPLICATION: list[tuple[dict[str, Any], str]] = [
    ({"CLIENT_ID": ...}, "E003"),
    ({"CLEINT_ID": "x"}, "E002"),
    ({"DOCUMENT_PATH": {"documents:read": "/{subject}"}}, "E002"),
    *(
        ({name: value}, "E004")
        for name, values in NO_VALUES.items()
        for value in values
    ),
    ({"BASE_URL": "http://api.example.org/api/v1"}, "W004"),
    ({"ENVIRONMENT": "live", "AUTH_URL": "http://127.0.0.1:9"}, "E005"),
    ({"ENVIRONMENT": "live", "AUTH_URL": "HTTP://127.0.0.1:9"}, "E005"),
    ({"BASE_URL": "https://api.example.org/v1"}, "E006"),
    *(
        ({"AUTH_URL": f"https://login.example.org{path}"}, "E006")
        for path in ("/oauth2", "/oauth2/auth", "/id/oauth2/token/")
    ),
    *(
        ({"API_ORIGIN": f"https://api.example.org{rest}"}, "E007")
        for rest in ("/keys", ":", ":0443")
    ),
    ({"CLIENT_SECRET": "short"}, "E008"),
    ({"WEBHOOK_SECRETS": ["a-webhook-secret-of-length", "short"]}, "E008"),
    *(
        ({"SCOPES": scopes}, "E019")
        for scopes in (["openid"], ["kyc:read"], ["openid", "kyc:read"])
    ),
    ({"SCOPES": ["kyc:read"], "LATER_SCOPES": ["profile:read", "claims:read"]}, "E019"),
    ({"SCOPES": ["profile:read", "documents:metadata"]}, "E065"),
    ({"SCOPES": ["profile:read", "documents:read"], "DOCUMENT_PATHS": PATHS}, "E066"),
    ({"LATER_SCOPES": ["documents:metadata"]}, "E065"),
    ({"LATER_SCOPES": ["documents:read"], "DOCUMENT_PATHS": PATHS}, "E066"),
    *(
        ({"POLICY": path}, "E010")
        for path in ("no.such.Policy", "django_identity.conf.Application")
    ),
    ({"WEBHOOK_SECRETS": []}, "W025"),
    ({"ENVIRONMENT": "live"}, "W026"),
    ({**LIVE, "REDIRECT_URI": "http://site.example.org/identity/callback/"}, "E005"),
    # In live it never passes.
    ({**LIVE, "WEBHOOK_SECRETS": SANDBOX["WEBHOOK_SECRETS"]}, "E018"),
    ({**LIVE, "CLIENT_SECRET": SANDBOX["CLIENT_SECRET"]}, "E018"),
    (SANDBOX, ""),
    (LIVE, ""),
    ({"DOCUMENT_KEYS": [KEY]}, ""),
    # Plain http to this machine.
    (
        {
            "BASE_URL": "http://localhost:9400/api/v1",
            "AUTH_URL": "http://localhost:9400",
        },
        "",
    ),
]
FIXED = {
    "DJANGO_IDENTITY": {
        **COMPLETE,
        "REDIRECT_URI": "https://site.example.org/identity/callback/",
    },
}
LANGUAGES = {"LANGUAGES": [("en", "English"), ("pt-br", "Portuguese")]}
GET = {"ops": {"get"}}
LOGIN = "https://login.example.org"
#: Settings of Django and of other packages, and the check that reports them.
OF_DJANGO: list[tuple[dict[str, Any], str]] = [
    ({"DJANGO_IDENTITY": OWN, "DEBUG": True}, "E038"),
    ({"DJANGO_IDENTITY": OWN, "USE_TZ": False}, "E039"),
    # A cookie without ``Secure`` goes over plain http as well; in test that is nobody's harm.
    ({"DJANGO_IDENTITY": OWN, "SESSION_COOKIE_SECURE": False}, "E011"),
    ({"DJANGO_IDENTITY": OWN, "CSRF_COOKIE_SECURE": False}, "E011"),
    ({"SESSION_COOKIE_SECURE": False, "CSRF_COOKIE_SECURE": False}, ""),
    # Without the backend nobody would stay signed in.
    (
        {"AUTHENTICATION_BACKENDS": ["django.contrib.auth.backends.ModelBackend"]},
        "E009",
    ),
    # The callback address must not follow a forged Host header; a wildcard domain is open too.
    *(
        ({"ALLOWED_HOSTS": hosts}, "W001")
        for hosts in (
            ["site.example.org", "*"],
            ["site.example.org", ".example.org"],
            [".co.uk"],
        )
    ),
    ({"ALLOWED_HOSTS": ["*"], **FIXED}, ""),
    *(({"IDENTITY_LOCAL_SIGN_IN_URL": url}, "E012") for url in (" ", "no-such-page")),
    *(
        ({"IDENTITY_LOCAL_SIGN_IN_URL": url}, "")
        for url in ("", None, "local-login", "https://login.example.org/")
    ),
    # No transaction spans two databases, and no foreign key does.
    *(
        ({"DATABASE_ROUTERS": [Tears(model)]}, "E035")
        for model in (StoredClaim, LinkedIdentity, User)
    ),
    *(
        ({"ROOT_URLCONF": urls}, "E040")
        for urls in ("django.contrib.staticfiles.urls", None)
    ),
    # Our pages could not find each other.
    *(
        (of_the_site(*pages), "E040")
        for pages in (
            ["login"],
            ["login", "callback"],
            ["profile"],
            ["login", "webhook"],
        )
    ),
    # Only one of several addresses is registered, and the webhook has no language.
    *(
        ({"ROOT_URLCONF": urls, **languages}, "E070")
        for languages in ({}, LANGUAGES)
        for urls in FOLLOWING
    ),
    ({"ROOT_URLCONF": OTHERS_FOLLOW}, ""),
    ({"ROOT_URLCONF": OTHERS_FOLLOW, **LANGUAGES}, ""),
    # The button posts to the site, which redirects: browsers ask the policy about that too.
    *(
        (csp(sources), "E071")
        for sources in (
            ["'self'"],
            ["'none'"],
            "'self' https://elsewhere.example.org",
            ["'self'", "https://login.example.com"],
        )
    ),
    *(
        (csp(sources), "")
        for sources in (
            ["'self'", LOGIN],
            ["'self'", "https://LOGIN.example.org:443/oauth2/"],
            {"login.example.org"},
            ["https://*.example.org"],
            ["https:"],
            ["*"],
            None,
        )
    ),
    (csp(["'self'"], is_sent=False), ""),
    # A gate would stay open after a revocation, until the time-out of the cache.
    ({"CACHEOPS": {"*.*": {"ops": "all", "timeout": 60}}}, "E077"),
    ({"CACHEOPS": {"*.*": {"timeout": 60}}}, ""),
    # The user of a session is read with the identity, as an answer about users.
    ({"CACHEOPS": {"auth.*": {"ops": "all"}, "*.*": {"ops": ()}}}, "E077"),
    ({"CACHEOPS": {"auth.group": {"ops": "all"}, "*.*": {"ops": ()}}}, ""),
    ({"CACHEOPS": {"Django_Identity.StoredClaim": {"ops": {"fetch"}}}}, "E077"),
    ({"CACHEOPS": {"django_identity.*": None, "*.*": {"ops": "all"}}}, "E077"),
    (
        {
            "CACHEOPS": {
                "django_identity.*": None,
                "auth.user": None,
                "*.*": {"ops": "all"},
            },
        },
        "",
    ),
    ({"CACHEOPS": {"*.*": {}}, "CACHEOPS_DEFAULTS": GET}, "E077"),
    (
        {"CACHEOPS": {"*.*": {}}, "CACHEOPS_DEFAULTS": GET, "CACHEOPS_ENABLED": False},
        "",
    ),
    (cachalot(), "E077"),
    (cachalot(CACHALOT_UNCACHABLE_APPS=["shop"]), "E077"),
    (cachalot(CACHALOT_UNCACHABLE_APPS=("django_identity",)), ""),
    (cachalot(CACHALOT_ENABLED=False), ""),
    # The sandbox's tables are not made in the site's database.
    *(
        (listing("INSTALLED_APPS", f"django_identity.{entry}"), "E013")
        for entry in ("sandbox", "testing", "sandbox.apps.SandboxConfig")
    ),
    (
        listing("MIDDLEWARE", "django_identity.sandbox.middleware.SandboxMiddleware"),
        "E013",
    ),
    (listing("MIDDLEWARE", "django_identity.sandboxes.Middleware"), ""),
]
#: What they report is in the addresses, in two settings, or in an app.
OF_NO_SINGLE_SETTING = ("W004", "E018", "E070", "E077")


def findings(*, deploy: bool = False) -> list[Any]:
    """What our checks report. Each has a hint."""
    every = run_checks(tags=[Tags.security], include_deployment_checks=deploy)
    ours = [each for each in every if each.id.startswith("django_identity.")]
    assert all(each.hint for each in ours)
    return ours


def messages(number: str, *, deploy: bool = False) -> list[str]:
    """What the check with this number reports."""
    of_number = f"django_identity.{number}"
    return [each.msg for each in findings(deploy=deploy) if each.id == of_number]


@pytest.mark.parametrize(
    ("application", "of_django", "number"),
    [
        *((changes, {}, number) for changes, number in OF_THE_APPLICATION),
        *(({}, changes, number) for changes, number in OF_DJANGO),
    ],
)
@SECURE
def test_every_mistake_has_a_check(application, of_django, number):
    """One check reports it, and names the setting."""
    with configured(**application), override_settings(**of_django):
        reports = findings()

    assert {each.id for each in reports} == (
        {f"django_identity.{number}"} if number else set()
    )
    if number not in OF_NO_SINGLE_SETTING:
        for each in reports:
            changed = {*application, *of_django}
            assert [name for name in changed if name in f"{each.msg} {each.hint}"]


@pytest.mark.parametrize(("given", "is_reported"), [(SANDBOX, True), (OWN, False)])
@SECURE
def test_no_server_has_the_secrets_of_the_sandbox(given, is_reported):
    with override_settings(DJANGO_IDENTITY=given):
        assert bool(messages("E018", deploy=True)) is is_reported


def test_a_sandbox_may_have_another_address():
    elsewhere = sandbox_application("http://127.0.0.1:9500")
    assert elsewhere["SERVICE_ACCOUNT_URL"] == "http://127.0.0.1:9500/account/"
    assert elsewhere == sandbox_application("http://127.0.0.1:9500/")


def test_an_environment_that_cannot_work_is_an_error():
    """It is said at the start, and not at the first sign-in."""
    with configured(), environment(HTTPS_PROXY="ftp://user:passed@nowhere.example"):
        [report] = findings()
    assert report.id == "django_identity.E014"
    assert "passed" not in str(report)


def test_document_keys_need_their_extra(monkeypatch):
    """Without joserfc no document would open; with it the keys are fine."""
    with configured(DOCUMENT_KEYS=[KEY]):
        assert check_ids() == set()
        monkeypatch.setattr(registration, "find_spec", lambda _name: None)
        assert check_ids() == {"django_identity.E067"}


@pytest.mark.parametrize(
    ("vendor", "options", "reported"),
    [
        ("postgresql", {}, set()),
        ("mysql", {}, set()),
        ("sqlite", {"transaction_mode": "IMMEDIATE"}, set()),
        ("sqlite", {"timeout": 20}, {"django_identity.W003"}),
    ],
)
def test_sqlite_waits_for_a_lock_at_the_beginning(
    monkeypatch,
    vendor,
    options,
    reported,
):
    """A transaction that reads first would fail at once beside another writer."""
    monkeypatch.setattr(connections["default"], "vendor", vendor)
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", options)
    assert check_ids() == reported


@pytest.mark.urls("tests.gates.scope_and_step_up_urls")
def test_a_gate_for_a_scope_that_nobody_is_asked_for():
    """It would send people to the service and back without an end."""
    for scope, is_reported in (("document:read", True), ("documents:read", False)):
        with configured(LATER_SCOPES=[scope]):
            assert bool(messages("E075")) is is_reported
    with override_settings(ROOT_URLCONF="tests.instruments.broken_urls"):
        assert not list(gates.problems())


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("shop.policy.Policy", "No module named 'shop'"),
        (f"{__name__}.Polici", 'does not define a "Polici" attribute/class'),
    ],
)
def test_a_policy_that_cannot_be_imported(path, cause):
    """The check says why: a module is missing, or the name in it."""
    with configured(POLICY=path):
        [message] = messages("E010")
    assert path in message
    assert cause in message


# A check that cannot be finished


class Raising(IdentityPolicy):
    @property
    def erasure(self) -> Any:  # type: ignore[override]
        raise LookupError("no such choice")


class RaisingRouter:
    def db_for_write(self, model: Any, **_hints: Any) -> Any:
        if model is User:
            raise LookupError("no such database")
        return None


@pytest.mark.parametrize(
    ("application", "of_django"),
    [
        ({"POLICY": f"{__name__}.Raising"}, {}),
        ({}, {"DATABASE_ROUTERS": [f"{__name__}.RaisingRouter"]}),
        ({}, {"CACHEOPS": ["django_identity.*"]}),
    ],
)
def test_an_error_of_the_sites_code_is_a_message(application, of_django):
    """It hides no check of Django's, and none of ours but its own."""
    others = {each.id for each in run_checks() if "django_identity" not in each.id}
    with configured(WEBHOOK_SECRETS=[], **application), override_settings(**of_django):
        found = run_checks()
    assert {*others, "django_identity.W025"} <= {each.id for each in found}
    [broken] = [each for each in found if each.id == "django_identity.E079"]
    assert "Error: " in broken.msg
    assert str(broken.hint).startswith("It was raised in ")
