"""Each wall that a new site meets is a check with a hint."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, ClassVar

import pytest
from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User, UserManager
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.core.checks import Tags, run_checks
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.db.models.functions import Lower
from django.test import override_settings
from django.test.utils import isolate_apps
from django.urls import include, path
from django.utils import timezone

from django_identity import anonymisation, conf
from django_identity.checks import erasures, gates, sign_ups, site
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
)
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


class OwnErasure(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """Nothing: the site's own way."""


class Deleting(IdentityPolicy):
    erasure = "delete"


class OwnFields(IdentityPolicy):
    def new_user_fields(self, **_about: Any) -> dict[str, Any]:
        return {"username": "chosen-by-the-site"}


def messages(number: str, *, deploy: bool = False) -> list[str]:
    """What the check reports. Each has a hint."""
    found = run_checks(tags=[Tags.security], include_deployment_checks=deploy)
    of_number = [each for each in found if each.id == f"django_identity.{number}"]
    assert all(each.hint for each in of_number)
    return [each.msg for each in of_number]


def reported(number: str, *, deploy: bool = False) -> bool:
    return bool(messages(number, deploy=deploy))


@pytest.mark.parametrize(
    ("application", "of_django", "number"),
    [
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


def demands_country(self: Any, username: str, country: str, email: str = "") -> None:
    """As some sites have it: what nobody gives is an error."""


def demands_number(self: Any, username: str, *, number: int, **more: Any) -> None:
    """The same, by name alone."""


def fills_itself(self: Any, username: str, email: str, password: str = "") -> None:
    """What a profile may lack gets an empty text, and ``password`` is always given."""


@pytest.mark.parametrize(
    ("create_user", "missing"),
    [(demands_country, "country"), (demands_number, "number"), (fills_itself, "")],
    ids=["country", "number", "nothing"],
)
def test_what_create_user_demands_and_nobody_gives(
    monkeypatch: pytest.MonkeyPatch, create_user: Any, missing: str
) -> None:
    """The package's own policy fills name and address; a site's own is its own to test."""
    with configured():
        assert not reported("E041")
        monkeypatch.setattr(UserManager, "create_user", create_user)
        assert reported("E041") is bool(missing)
        with configured(POLICY="tests.test_checks.OwnFields"):
            assert not reported("E041")


@pytest.mark.parametrize("name", ["username", "email", "last_name"])
def test_what_the_user_model_refuses_of_a_sign_up(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with configured():
        field = User._meta.get_field(name)
        monkeypatch.setattr(field, "choices", [("a", "A")])
        assert reported("E041")


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
        assert reported("E041") is is_reported


def test_a_required_field_without_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives it, so it gets what the user model has for it, as ``create_user`` does."""
    monkeypatch.setattr(User._meta.get_field("last_name"), "blank", False)
    for scopes in (["profile:read"], ["claims:read"]):
        with configured(SCOPES=scopes):
            assert not reported("E041")


@pytest.mark.parametrize(
    "field",
    [
        models.IntegerField(default=User.objects.count),
        models.CharField(max_length=40, default=lambda: User.objects.get().username),
        models.ForeignKey(User, models.CASCADE, "+", default=1),
        models.CharField(max_length=40, default=""),
    ],
    ids=["number", "text", "foreign key", "empty"],
)
@isolate_apps("tests.leaky")
def test_a_default_of_the_user_model(
    field: "models.Field[Any, Any]", monkeypatch: pytest.MonkeyPatch
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
        assert not reported("E041")
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


def first_name_is_there(self: Any) -> None:
    if not self.first_name:
        raise ValidationError("Who is it?")


def has_a_company(self: Any) -> None:
    """What no blank account has, and each account of the site."""
    self.company.check_vat()


@pytest.mark.parametrize(
    ("condition", "clean", "named"),
    [
        (~Q(first_name=""), None, "has_a_name"),
        (~Q(initial=""), None, "has_a_name"),
        (Q(is_alumna=False) | ~Q(first_name=""), None, ""),
        (Q(is_alumna=True) | ~Q(first_name=""), None, "has_a_name"),
        (Q(is_alumna=True) | Q(is_staff=True), None, ""),
        (Q(company__isnull=False), None, ""),
        (Q(company__isnull=False) | ~Q(first_name=""), None, ""),
        (Q(username__startswith="m-"), None, "has_a_name"),
        (Q(born_on__gt=date(1900, 1, 2)), None, "has_a_name"),
        (Q(count__gte=0) & Q(joined_at__gt=date(2000, 1, 1)), None, ""),
        (Q(first_name=""), first_name_is_there, "first_name_is_there"),
        (Q(first_name=""), has_a_company, ""),
    ],
)
@isolate_apps("tests.leaky")
def test_a_rule_that_refuses_a_blank_account(
    monkeypatch: pytest.MonkeyPatch, condition: Q, clean: Any, named: str
) -> None:
    """Every erasure would stay pending. No rule is asked of what no blank account is sure of."""

    class Member(AbstractBaseUser):
        username = models.CharField(max_length=150, unique=True)
        first_name = models.CharField(max_length=150)
        initial = models.GeneratedField(
            expression=Lower("first_name"),
            output_field=models.CharField(max_length=150),
            db_persist=True,
        )
        born_on = models.DateField()
        is_staff = models.BooleanField(default=False)
        is_alumna = models.BooleanField(default=False)
        company = models.ForeignKey(User, models.CASCADE, "+")
        count = models.IntegerField(default=User.objects.count)
        joined_at = models.DateTimeField(default=timezone.now)

        USERNAME_FIELD = "username"

        class Meta:
            app_label = "leaky"
            constraints: ClassVar = [
                models.CheckConstraint(condition=condition, name="has_a_name")
            ]

    if clean:
        monkeypatch.setattr(Member, "clean", clean)
    monkeypatch.setattr(erasures, "get_user_model", lambda: Member)
    with configured():
        found = messages("W032")
        assert not reported("E079")
    assert [named in each for each in found] == [True] * bool(named)


# Rows of the site that point at ours


@pytest.fixture
def of_the_leaky_site() -> Iterator[None]:
    """The models that a test adds to the app go with it."""
    before = {**apps.all_models["leaky"]}
    yield
    apps.all_models["leaky"].clear()
    apps.all_models["leaky"].update(before)
    apps.clear_cache()


def key_to(to: type[models.Model], on_delete: Any, **options: Any) -> Any:
    return models.ForeignKey(to, on_delete, related_name="+", **options)


def site_model(name: str, **fields: Any) -> Any:
    meta = type("Meta", (), {"app_label": "leaky", **fields.pop("meta", {})})
    return type(name, (models.Model,), {"__module__": __name__, "Meta": meta, **fields})


@pytest.mark.parametrize("ours", [LinkedIdentity, StoredClaim, AuthorizationRequest])
@pytest.mark.parametrize(
    "on_delete", [models.PROTECT, models.RESTRICT, models.DO_NOTHING]
)
@pytest.mark.usefixtures("of_the_leaky_site")
def test_a_row_of_the_site_that_protects_ours(ours: Any, on_delete: Any) -> None:
    """The person's data would stay. The field is named, however far it is from our row."""
    loan = site_model("Loan", of=key_to(ours, erasures.CASCADES[-1]))
    with configured():
        assert not reported("E032")
    site_model("Fine", loan=key_to(loan, on_delete))
    site_model("Stamp", of=key_to(ours, on_delete))
    with configured():
        assert reported("E032")
        [found] = messages("E032")
    assert "leaky.Fine.loan, leaky.Stamp.of." in found


@pytest.mark.usefixtures("of_the_leaky_site")
def test_a_row_that_a_parent_or_a_generic_relation_brings() -> None:
    """Django deletes a row with its parents, and with what points at it by a content type."""
    thing = site_model("Thing")
    site_model("Seal", thing=key_to(thing, models.PROTECT))
    tag = site_model(
        "Tag",
        content_type=key_to(ContentType, models.CASCADE),
        object_id=models.TextField(),
        of=GenericForeignKey(),
    )
    site_model("Mark", tag=key_to(tag, models.PROTECT))
    loan = {"__module__": __name__, "Meta": type("Meta", (), {"app_label": "leaky"})}
    loan |= {"of": key_to(LinkedIdentity, models.CASCADE), "tags": GenericRelation(tag)}
    type("Loan", (thing,), loan)
    with configured():
        [found] = messages("E032")
    assert "leaky.Mark.tag, leaky.Seal.thing." in found


@pytest.mark.usefixtures("of_the_leaky_site")
def test_a_row_of_the_site_that_lets_ours_go() -> None:
    """It is deleted or emptied, or no constraint holds it; a receipt has nobody's data."""
    identity = key_to(LinkedIdentity, models.CASCADE)
    loan = site_model("Loan", of=identity, by=key_to(User, models.PROTECT))
    # Deleted with the identity, it restricts no deletion of the loan.
    of = key_to(LinkedIdentity, models.CASCADE)
    site_model("Fine", of=of, loan=key_to(loan, models.RESTRICT))
    site_model("Note", of=key_to(LinkedIdentity, models.SET_NULL, null=True))
    loose = key_to(LinkedIdentity, models.DO_NOTHING, db_constraint=False)
    site_model("Copy2", of=loose)
    of = key_to(LinkedIdentity, models.DO_NOTHING)
    site_model("View", of=of, meta={"managed": False})
    site_model("Proof", of=key_to(ErasureReceipt, models.PROTECT))
    with configured():
        assert not reported("E032")


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


def test_an_error_of_the_sites_code_is_a_message() -> None:
    """It hides no check of Django's, and none of ours but its own."""
    of_django = [each.id for each in run_checks() if "django_identity" not in each.id]
    for name, changes in {
        "policy": {},
        "router": {"DATABASE_ROUTERS": [f"{__name__}.RaisingRouter"]},
        "caches": {"CACHEOPS": ["django_identity.*"]},
    }.items():
        policy = {"POLICY": f"{__name__}.Raising"} if name == "policy" else {}
        with configured(WEBHOOK_SECRETS=[], **policy), override_settings(**changes):
            found = run_checks()
        ids = [each.id for each in found]
        assert "django_identity.E079" in ids, name
        assert "django_identity.W025" in ids, name
        assert {*of_django} <= {*ids}, name
        [broken] = [each for each in found if each.id == "django_identity.E079"]
        assert "Error: " in broken.msg
        assert str(broken.hint).startswith("It was raised in ")


def of_the_site(*pages: str) -> tuple[Any, ...]:
    """The site's own addresses, in a namespace with our name, before ours."""
    views = [path(f"{page}/", root_urls.home, name=page) for page in pages]
    own = path("own/", include((views, "identity")))
    return (own, path("identity/", include("django_identity.urls")))


@pytest.mark.parametrize(
    "pages", [["login"], ["login", "callback"], ["profile"], ["login", "webhook"]], ids=str
)  # fmt: skip
def test_a_namespace_of_our_name(pages: list[str]) -> None:
    """Our pages could not find each other."""
    patterns = i18n_urls.Conf(*of_the_site(*pages))
    with configured(), override_settings(ROOT_URLCONF=patterns):
        assert reported("E040")
        assert not reported("E079")


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
def test_a_policy_that_keeps_people_from_the_service(
    sources: Any, is_reported: bool
) -> None:
    """The button posts to the site, which redirects: browsers ask the policy about that too."""
    directives = {"default-src": ["'self'"], "form-action": sources}
    with configured(), override_settings(SECURE_CSP=directives):
        assert not reported("E071")
        with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, CSP_OF_DJANGO]):
            assert reported("E071") is is_reported


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
    with override_settings(DJANGO_IDENTITY=SANDBOX):
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
    ("given", "deploy", "is_reported"),
    [
        (
            {**OWN, "WEBHOOK_SECRETS": SANDBOX["WEBHOOK_SECRETS"]},
            False,
            True,
        ),
        ({**OWN, "CLIENT_SECRET": SANDBOX["CLIENT_SECRET"]}, False, True),
        (SANDBOX, True, True),
        (OWN, True, False),
    ],
    ids=[
        "webhook secret",
        "client secret",
        "on a server",
        "none of them",
    ],
)
def test_what_everybody_knows_protects_nobody(
    given: Mapping[str, Any], deploy: bool, is_reported: bool
) -> None:
    """In live it never passes; on a server, in no environment."""
    with override_settings(DJANGO_IDENTITY=given):
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
