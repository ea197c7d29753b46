"""Each wall that a new site meets is a check with a hint."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.core.checks import Tags, run_checks
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.db.models.functions import Lower
from django.test import override_settings
from django.test.utils import isolate_apps
from django.urls import path, reverse_lazy

from django_identity import anonymisation, conf
from django_identity.checks import gates, sign_ups, site
from django_identity.gates import claim_required
from django_identity.policy import IdentityPolicy
from django_identity.sandbox import sandbox_application
from tests import i18n_urls
from tests import urls as root_urls
from tests.test_conf import COMPLETE, check_ids, configured

# From 6.1 on, Django's own checks ask the database.
pytestmark = pytest.mark.django_db

LIVE = {
    "ENVIRONMENT": "live",
    "ENCRYPTION_KEYS": ["a-key-of-its-own-that-is-long-enough"],
}
SECURE = override_settings(SESSION_COOKIE_SECURE=True, CSRF_COOKIE_SECURE=True)
SANDBOX = sandbox_application()
OWN = {**COMPLETE, **LIVE}


urlpatterns = [
    *root_urls.urlpatterns,
    path("brand/", claim_required("age_over_18", application="brnad")(root_urls.home)),
]


class OwnErasure(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """Nothing: the site's own way."""


class Deleting(IdentityPolicy):
    erasure = "delete"


class OwnFields(IdentityPolicy):
    def new_user_fields(self, **_about: Any) -> dict[str, Any]:
        return {"username": "chosen-by-the-site"}


def reported(number: str, *, deploy: bool = False) -> bool:
    """Whether the check is reported, and has a hint."""
    found = run_checks(tags=[Tags.security], include_deployment_checks=deploy)
    of_number = [each for each in found if each.id == f"django_identity.{number}"]
    assert all(each.hint for each in of_number)
    return bool(of_number)


@pytest.mark.parametrize(
    ("application", "of_django", "number"),
    [
        ({"AUTH_URL": "https://login.example.org/oauth2"}, {}, "E037"),
        ({"AUTH_URL": "https://login.example.org/oauth2/auth"}, {}, "E037"),
        ({"AUTH_URL": "https://login.example.org/id/oauth2/token/"}, {}, "E037"),
        ({"WEBHOOK_SECRETS": []}, {}, "W025"),
        ({"ENVIRONMENT": "live"}, {}, "W026"),
        (
            {**LIVE, "REDIRECT_URI": "http://site.example.org/identity/callback/"},
            {},
            "E005",
        ),
        (LIVE, {"DEBUG": True}, "E038"),
        (LIVE, {"USE_TZ": False}, "E039"),
        (LIVE, {"ROOT_URLCONF": "django.contrib.staticfiles.urls"}, "E040"),
        (LIVE, {"ROOT_URLCONF": None}, "E040"),
    ],
)
@SECURE
def test_each_mistake_is_reported_by_its_own_check(
    application: dict[str, Any], of_django: dict[str, Any], number: str
) -> None:
    with configured(**LIVE):
        assert check_ids() == set()
    with configured(**application), override_settings(**of_django):
        assert reported(number)


@pytest.mark.urls("tests.gates.scope_and_step_up_urls")
def test_a_gate_for_a_scope_that_nobody_is_asked_for() -> None:
    """It would send people to the service and back without an end."""
    with configured(LATER_SCOPES=["document:read"]):
        assert reported("E075")
    with configured(LATER_SCOPES=["documents:read"]):
        assert not reported("E075")
    with override_settings(ROOT_URLCONF="tests.instruments.broken_urls"):
        assert not list(gates.problems())


@pytest.mark.urls(__name__)
def test_a_gate_of_an_application_that_is_not_set_up() -> None:
    """Its page would answer everybody with a 500."""
    with configured():
        [found] = [each for each in run_checks() if each.id == "django_identity.E075"]
    assert "/brand/ is of the application 'brnad'" in found.msg
    given = {"default": COMPLETE, "brnad": COMPLETE}
    with override_settings(DJANGO_IDENTITY=given):
        assert not reported("E075")


@SECURE
def test_one_webhook_secret_for_both_environments() -> None:
    """Events of the test environment would be taken for live ones."""
    for secrets in (COMPLETE["WEBHOOK_SECRETS"], ["another-secret-of-live"]):
        given = {"default": {**OWN, "WEBHOOK_SECRETS": secrets}, "trial": COMPLETE}
        with override_settings(DJANGO_IDENTITY=given):
            assert reported("E036") is (secrets == COMPLETE["WEBHOOK_SECRETS"])


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("shop.policy.Policy", "No module named 'shop'"),
        ("tests.test_checks.Polici", 'does not define a "Polici" attribute/class'),
    ],
)
def test_a_policy_that_cannot_be_imported(path: str, cause: str) -> None:
    """The check says why: a module is missing, or the name in it."""
    with configured(POLICY=path):
        (found,) = [each for each in run_checks() if each.id == "django_identity.E010"]
    assert path in found.msg
    assert cause in found.msg


@SECURE
def test_a_test_application_beside_a_live_one() -> None:
    """On a deployed site made-up people would get accounts beside real ones."""
    secrets = ["another-secret-of-live"]
    live = {**OWN, "WEBHOOK_SECRETS": secrets}
    for applications, is_reported in (
        ({"default": live, "staging": COMPLETE}, True),
        ({"default": COMPLETE, "brand": live}, True),
        ({"default": live, "brand": live}, False),
        ({"default": COMPLETE, "brand": COMPLETE}, False),
    ):
        with override_settings(DJANGO_IDENTITY=applications):
            assert reported("E068", deploy=True) is is_reported
            assert not reported("E068"), (
                "on a development machine it is a way to try both"
            )


class OfBefore(IdentityPolicy):
    """Methods as they were before they were shown the claims."""

    def may_sign_up(self, *, profile: Any, kyc: Any) -> bool:  # type: ignore[override]
        return True

    def may_link(self, user: Any, profile: Any) -> bool:  # type: ignore[override]
        return True

    def may_sign_in(self, user: Any) -> bool:  # type: ignore[override]
        return True

    def changed_user_fields(self, user: Any, *, profile: Any, kyc: Any) -> Any:  # type: ignore[override]
        return {}


class Awaited(IdentityPolicy):
    """Its coroutine would count as yes."""

    async def may_sign_in(self, user: Any, *, claims: Any) -> bool:  # type: ignore[override]
        return False


class Newer(IdentityPolicy):
    """What takes more, or all, or other names of what is passed by position, is called."""

    may_sign_up = staticmethod(lambda **_about: True)  # type: ignore[assignment]

    def may_link(self, person: Any, data: Any, *, claims: Any, more: int = 0) -> bool:  # type: ignore[override]
        return True

    def may_sign_in(self, *_args: Any, **_about: Any) -> bool:
        return True

    def claim_value(self, name: str, said: Any) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    ("policy", "methods"),
    [
        ("OfBefore", ["may_sign_up", "may_link", "may_sign_in", "changed_user_fields"]),
        ("Awaited", ["may_sign_in"]),
        ("Newer", []),
        ("OwnErasure", []),
        ("OwnFields", []),
    ],
)
def test_a_policy_with_methods_of_before(policy: str, methods: list[str]) -> None:
    """The error names the method and how it is written now."""
    with configured(POLICY=f"{__name__}.{policy}"):
        found = [
            each
            for each in run_checks(tags=[Tags.security])
            if each.id == "django_identity.E069"
        ]
    assert len(found) == len(methods)
    for each, method in zip(found, methods, strict=True):
        assert f"{method}()" in each.msg
        assert str(each.hint).startswith(f"Write it as: def {method}(self, ")
        assert "claims" in str(each.hint)


class Misspelt(IdentityPolicy):
    erasure = "Delete"
    reasons: Any = [("age_over_18", "A bar is for adults.")]
    people_may_erase: Any = "False"
    audit_erasures: Any = 0
    help_url = "no-such-page"
    privacy_url: Any = reverse_lazy("no-such-page")
    contact_url = "mailto:help@example.org"
    set_password_url = "local-login"


def test_attributes_of_a_policy_that_cannot_be_used() -> None:
    """A page would fail, or an erasure would leave the row that it should delete."""
    for policy, wrong in (
        ("Misspelt", [
            "erasure", "reasons", "people_may_erase", "audit_erasures",
            "help_url", "privacy_url",
        ]),
        ("Deleting", []),
    ):  # fmt: skip
        with configured(POLICY=f"{__name__}.{policy}"):
            found = [each for each in run_checks() if each.id == "django_identity.E078"]
        named = [each.msg.partition(": ")[2].partition(" is ")[0] for each in found]
        assert named == wrong


def test_a_required_field_that_nobody_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own policy fills name and address; a site's own is its own to test."""
    with configured():
        assert not reported("E041")
        monkeypatch.setattr(User._meta.get_field("last_login"), "blank", False)
        assert reported("E041")
        with configured(POLICY="tests.test_checks.OwnFields"):
            assert not reported("E041")


def unique_address(**options: Any) -> list[UniqueConstraint]:
    return [UniqueConstraint(name="one_address", **options)]


@pytest.mark.parametrize(
    ("constraints", "may_be_null", "scopes", "is_reported"),
    [
        (unique_address(fields=["email"]), False, ["claims:read"], True),
        (
            [UniqueConstraint(Lower("email"), name="one_address")],
            False,
            ["claims:read"],
            True,
        ),
        (
            unique_address(fields=["email"]),
            False,
            ["claims:read", "profile:read"],
            False,
        ),
        (unique_address(fields=["email"]), True, ["claims:read"], False),
        (unique_address(fields=["email", "is_staff"]), False, ["claims:read"], False),
        (
            unique_address(fields=["email"], condition=~Q(email="")),
            False,
            ["claims:read"],
            False,
        ),
        ([], False, ["claims:read"], False),
    ],
    ids=[
        "unique",
        "unique in small letters",
        "with a profile",
        "may be null",
        "unique together",
        "unique if there is one",
        "not unique",
    ],
)
def test_a_unique_field_that_stays_empty(
    monkeypatch: pytest.MonkeyPatch, constraints: Any, may_be_null: bool, scopes: list[str],
    is_reported: bool,
) -> None:  # fmt: skip
    """Without a profile all new people would have the same address: none."""
    monkeypatch.setattr(User._meta, "constraints", constraints)
    monkeypatch.setattr(User._meta.get_field("email"), "null", may_be_null)
    with configured(SCOPES=scopes):
        assert reported("E073") is is_reported


def test_a_required_field_without_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is filled if the service says the profile, and only then."""
    monkeypatch.setattr(User._meta.get_field("last_name"), "blank", False)
    with configured():
        assert not reported("E041")
    with configured(SCOPES=["claims:read"]):
        assert reported("E041")


@pytest.mark.parametrize(
    ("field", "is_refused"),
    [
        (models.IntegerField(default=User.objects.count), False),
        (
            models.CharField(
                max_length=40, default=lambda: User.objects.get().username
            ),
            False,
        ),
        (models.ForeignKey(User, models.CASCADE, "+", default=1), False),
        (models.CharField(max_length=40, default=""), True),
    ],
    ids=["number", "text", "foreign key", "empty"],
)
@isolate_apps("tests.leaky")
def test_a_default_of_the_user_model(
    field: "models.Field[Any, Any]", is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that may be a query is not asked for: ``migrate`` runs the checks without tables."""

    class Member(AbstractBaseUser):
        username = models.CharField(max_length=150, unique=True)
        first_name = models.CharField(max_length=150)
        last_name = models.CharField(max_length=150)
        email = models.EmailField()
        extra = field

        class Meta:
            app_label = "leaky"

    monkeypatch.setattr(sign_ups, "get_user_model", lambda: Member)
    with configured():
        assert reported("E041") is is_refused
        assert not reported("W032")


def test_fields_that_an_erasure_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named; a site that erases in its own way knows its own fields."""
    with configured():
        assert not reported("W032")
        monkeypatch.setattr(anonymisation, "cannot_blank", lambda _model: ["shoe_size"])
        assert reported("W032")
        for policy in ("OwnErasure", "Deleting"):
            with configured(POLICY=f"tests.test_checks.{policy}"):
                assert not reported("W032")


def test_former_versions_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever app keeps them: a model tells what it can hold, and an erasure of ours leaves it.

    What django-simple-history leaves out, it says on the user model.
    """
    keeping = {"INSTALLED_APPS": [*settings.INSTALLED_APPS, "tests.keepers"]}
    keepers = "keepers.Entry, keepers.Revision, keepers.Snapshot, keepers.UserEvent"
    with configured():
        assert not reported("W033")
        with override_settings(**keeping):
            (found,) = [
                each for each in run_checks() if each.id == "django_identity.W033"
            ]
        assert f"auth.User: {keepers}." in found.msg
        monkeypatch.setattr(
            User._meta, "simple_history_manager_attribute", "history", raising=False
        )
        for policy, is_reported in (
            ("django_identity.allauth.AllauthPolicy", True),
            ("tests.test_checks.OwnErasure", False),
        ):
            with configured(POLICY=policy):
                assert reported("W033") is is_reported


# What changes our addresses, and what closes the way to the service


@pytest.mark.parametrize(
    ("urlconf", "is_reported"),
    [
        ("prefixed", True),
        ("prefixed_but_one", True),
        ("translated", True),
        ("others", False),
    ],
)
def test_addresses_that_follow_the_language(urlconf: str, is_reported: bool) -> None:
    """Only one of them is registered at the service, and the webhook has no language."""
    languages = [("en", "English"), ("pt-br", "Portuguese")]
    chosen = {"ROOT_URLCONF": getattr(i18n_urls, urlconf)}
    for given in (chosen, {**chosen, "LANGUAGES": languages}):
        with configured(), override_settings(**given):
            assert reported("E070") is is_reported


CSP_OF_DJANGO = "django.middleware.csp.ContentSecurityPolicyMiddleware"
CSP_OF_DJANGO_CSP = "csp.middleware.CSPMiddleware"


@pytest.mark.parametrize(
    ("sources", "is_reported"),
    [
        (["'self'"], True),
        (["'none'"], True),
        ("'self' https://elsewhere.example.org", True),
        (["'self'", "https://login.example.com"], True),
        (["'self'", "https://login.example.org"], False),
        (["'self'", "https://LOGIN.example.org:443/oauth2/"], False),
        ({"login.example.org"}, False),
        (["https://*.example.org"], False),
        (["https:"], False),
        (["*"], False),
        (None, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("middleware", [CSP_OF_DJANGO, CSP_OF_DJANGO_CSP])
def test_a_policy_that_keeps_people_from_the_service(
    middleware: str, sources: Any, is_reported: bool
) -> None:
    """The button posts to the site, which redirects: browsers ask the policy about that too."""
    directives = {"default-src": ["'self'"], "form-action": sources}
    given = {
        "SECURE_CSP": directives if middleware == CSP_OF_DJANGO else {},
        "CONTENT_SECURITY_POLICY": {"DIRECTIVES": directives},
    }
    with configured(), override_settings(**given):
        assert not reported("E071")
        with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, middleware]):
            assert reported("E071") is is_reported


def test_a_policy_that_is_not_for_our_pages() -> None:
    """django-csp leaves out some addresses."""
    policy = {
        "DIRECTIVES": {"form-action": ["'self'"]},
        "EXCLUDE_URL_PREFIXES": ["/identity"],
    }
    given = {"MIDDLEWARE": [CSP_OF_DJANGO_CSP], "CONTENT_SECURITY_POLICY": policy}
    with configured(), override_settings(**given):
        assert not reported("E071")


@pytest.mark.parametrize(
    ("given", "is_reported"),
    [
        ({"TENANT_APPS": ["django.contrib.auth", "django_identity"]}, True),
        ({"TENANT_APPS": ("django_identity.apps.IdentityConfig",)}, True),
        ({"TENANT_APPS": ["shop"], "SHARED_APPS": ["django_identity"]}, False),
    ],
)
def test_a_schema_for_each_tenant(given: dict[str, Any], is_reported: bool) -> None:
    """An event reaches the schema of its address only, and upkeep one schema."""
    with configured(), override_settings(**given):
        assert reported("W070") is is_reported


class Cachalot(AppConfig):
    """What a check can see of django-cachalot."""

    name = "tests.deliveries"
    label = "cachalot"


@pytest.mark.parametrize(
    ("profiles", "is_reported"),
    [
        ({"*.*": {"ops": "all", "timeout": 60}}, True),
        ({"*.*": {"timeout": 60}}, False),
        ({"auth.*": {"ops": "all"}, "*.*": {"ops": ()}}, False),
        ({"Django_Identity.StoredClaim": {"ops": {"fetch"}}}, True),
        ({"django_identity.*": None, "*.*": {"ops": "all"}}, False),
    ],
)
def test_answers_that_cacheops_keeps(
    profiles: dict[str, Any], is_reported: bool
) -> None:
    """A gate would stay open after a revocation, until the time-out of the cache."""
    with configured(), override_settings(CACHEOPS=profiles):
        assert reported("E077") is is_reported


def test_answers_that_cacheops_keeps_by_its_defaults() -> None:
    """What a profile leaves out."""
    given = {"CACHEOPS": {"*.*": {}}, "CACHEOPS_DEFAULTS": {"ops": {"get"}}}
    with configured(), override_settings(**given):
        assert reported("E077")
    with configured(), override_settings(**given, CACHEOPS_ENABLED=False):
        assert not reported("E077")


@pytest.mark.parametrize(
    ("given", "is_reported"),
    [
        ({}, True),
        ({"CACHALOT_UNCACHABLE_APPS": ["shop"]}, True),
        ({"CACHALOT_UNCACHABLE_APPS": ("django_identity",)}, False),
        ({"CACHALOT_ENABLED": False}, False),
    ],
)
def test_answers_that_cachalot_keeps(given: dict[str, Any], is_reported: bool) -> None:
    """It keeps all tables unless told otherwise."""
    installed = [*settings.INSTALLED_APPS, "tests.test_checks.Cachalot"]
    with configured(), override_settings(INSTALLED_APPS=installed, **given):
        assert reported("E077") is is_reported


# The sandbox, and what everybody knows of it


def test_one_line_configures_a_site() -> None:
    """Every check passes on a development machine, and the values are those of the check."""
    with override_settings(DJANGO_IDENTITY={"default": SANDBOX}):
        assert not conf.problems()
        assert not reported("E018")
    elsewhere = sandbox_application("http://127.0.0.1:9500")
    assert elsewhere["SERVICE_ACCOUNT_URL"] == "http://127.0.0.1:9500/account/"
    assert elsewhere == sandbox_application("http://127.0.0.1:9500/")
    values = [
        SANDBOX["CLIENT_ID"],
        SANDBOX["CLIENT_SECRET"],
        *SANDBOX["WEBHOOK_SECRETS"],
    ]
    assert all(each.startswith(site.SANDBOX_VALUES) for each in values)


@pytest.mark.parametrize(
    ("applications", "deploy", "is_reported"),
    [
        ({"default": OWN, "try": SANDBOX}, False, True),
        (
            {"default": {**OWN, "WEBHOOK_SECRETS": SANDBOX["WEBHOOK_SECRETS"]}},
            False,
            True,
        ),
        ({"default": {**OWN, "CLIENT_SECRET": SANDBOX["CLIENT_SECRET"]}}, False, True),
        ({"default": SANDBOX}, True, True),
        ({"default": OWN}, True, False),
    ],
    ids=[
        "beside a live one",
        "webhook secret",
        "client secret",
        "on a server",
        "none of them",
    ],
)
def test_what_everybody_knows_protects_nobody(
    applications: Mapping[str, Any], deploy: bool, is_reported: bool
) -> None:
    """In live it never passes; on a server, in no environment."""
    with override_settings(DJANGO_IDENTITY=applications):
        assert reported("E018", deploy=deploy) is is_reported


@pytest.mark.parametrize(
    ("setting", "path", "count"),
    [
        ("INSTALLED_APPS", "django_identity.sandbox", 1),
        ("INSTALLED_APPS", "django_identity.sandbox.apps.SandboxConfig", 1),
        ("INSTALLED_APPS", "django_identity.testing", 1),
        ("MIDDLEWARE", "django_identity.sandbox.middleware.SandboxMiddleware", 1),
        ("MIDDLEWARE", "django_identity.sandboxes.Middleware", 0),
    ],
)
def test_a_site_that_lists_it_fails_its_check(
    setting: str, path: str, count: int
) -> None:
    """An error names the setting; the sandbox's tables are not made in the site's database."""
    with override_settings(**{setting: [*getattr(settings, setting), path]}):
        messages = run_checks(tags=[Tags.security])
    found = [each for each in messages if each.id == "django_identity.E013"]
    assert len(found) == count
    assert all(setting in each.msg for each in found)
