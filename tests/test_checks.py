"""Each wall that a new site meets is a check with a hint."""

from collections.abc import Iterator
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
    TokenGrant,
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


class Cachalot(AppConfig):
    """What a check can see of django-cachalot."""

    name = "tests.deliveries"
    label = "cachalot"


def messages(number: str, *, deploy: bool = False) -> list[str]:
    """What the check reports. Each has a hint."""
    found = run_checks(tags=[Tags.security], include_deployment_checks=deploy)
    of_number = [each for each in found if each.id == f"django_identity.{number}"]
    assert all(each.hint for each in of_number)
    return [each.msg for each in of_number]


def reported(number: str, *, deploy: bool = False) -> bool:
    return bool(messages(number, deploy=deploy))


# Settings


def of_the_site(*pages: str) -> dict[str, object]:
    """The site's own addresses, in a namespace with our name, before ours."""
    views = [path(f"{page}/", root_urls.home, name=page) for page in pages]
    own = path("own/", include((views, "identity")))
    ours = path("identity/", include("django_identity.urls"))
    return {"ROOT_URLCONF": i18n_urls.Conf(own, ours)}


def csp(sources: object, *, is_sent: bool = True) -> dict[str, object]:
    """Django's policy for forms, and the middleware that sends it."""
    sends = ["django.middleware.csp.ContentSecurityPolicyMiddleware"] * is_sent
    return {
        "SECURE_CSP": {"default-src": ["'self'"], "form-action": sources},
        "MIDDLEWARE": [*settings.MIDDLEWARE, *sends],
    }


def cacheops(profiles: dict[str, object], **more: object) -> dict[str, object]:
    return {"CACHEOPS": profiles, **more}


def cachalot(**more: object) -> dict[str, object]:
    apps = [*settings.INSTALLED_APPS, "tests.test_checks.Cachalot"]
    return {"INSTALLED_APPS": apps, **more}


def listing(setting: str, entry: str) -> dict[str, object]:
    return {setting: [*getattr(settings, setting), entry]}


LANGUAGES = [("en", "English"), ("pt-br", "Portuguese")]
GET = {"ops": {"get"}}
LOGIN = "https://login.example.org"
#: The check, whether it is reported, the application's settings and Django's.
ROWS: list[tuple[str, bool, dict[str, Any], dict[str, Any]]] = [
    ("W025", True, {"WEBHOOK_SECRETS": []}, {}),
    ("W026", True, {"ENVIRONMENT": "live"}, {}),
    ("E005", True, {**LIVE, "REDIRECT_URI": "http://site.example.org/identity/callback/"}, {}),
    ("E038", True, LIVE, {"DEBUG": True}),
    ("E039", True, LIVE, {"USE_TZ": False}),
    ("E040", True, LIVE, {"ROOT_URLCONF": "django.contrib.staticfiles.urls"}),
    ("E040", True, LIVE, {"ROOT_URLCONF": None}),
    # Our pages could not find each other.
    ("E040", True, {}, of_the_site("login")),
    ("E040", True, {}, of_the_site("login", "callback")),
    ("E040", True, {}, of_the_site("profile")),
    ("E040", True, {}, of_the_site("login", "webhook")),
    ("E079", False, {}, of_the_site("login", "webhook")),
    # Only one of several addresses is registered, and the webhook has no language.
    *(("E070", is_reported, {}, {"ROOT_URLCONF": getattr(i18n_urls, name), **languages})
      for name, is_reported in (("prefixed", True), ("prefixed_but_one", True),
                                ("translated", True), ("others", False))
      for languages in ({}, {"LANGUAGES": LANGUAGES})),
    # The button posts to the site, which redirects: browsers ask the policy about that too.
    ("E071", True, {}, csp(["'self'"])),
    ("E071", False, {}, csp(["'self'"], is_sent=False)),
    ("E071", True, {}, csp(["'none'"])),
    ("E071", True, {}, csp("'self' https://elsewhere.example.org")),
    ("E071", True, {}, csp(["'self'", "https://login.example.com"])),
    ("E071", False, {}, csp(["'self'", LOGIN])),
    ("E071", False, {}, csp(["'self'", "https://LOGIN.example.org:443/oauth2/"])),
    ("E071", False, {}, csp({"login.example.org"})),
    ("E071", False, {}, csp(["https://*.example.org"])),
    ("E071", False, {}, csp(["https:"])),
    ("E071", False, {}, csp(["*"])),
    ("E071", False, {}, csp(None)),
    # A gate would stay open after a revocation, until the time-out of the cache.
    ("E077", True, {}, cacheops({"*.*": {"ops": "all", "timeout": 60}})),
    ("E077", False, {}, cacheops({"*.*": {"timeout": 60}})),
    ("E077", False, {}, cacheops({"auth.*": {"ops": "all"}, "*.*": {"ops": ()}})),
    ("E077", True, {}, cacheops({"Django_Identity.StoredClaim": {"ops": {"fetch"}}})),
    ("E077", False, {}, cacheops({"django_identity.*": None, "*.*": {"ops": "all"}})),
    ("E077", True, {}, cacheops({"*.*": {}}, CACHEOPS_DEFAULTS=GET)),
    ("E077", False, {}, cacheops({"*.*": {}}, CACHEOPS_DEFAULTS=GET, CACHEOPS_ENABLED=False)),
    ("E077", True, {}, cachalot()),
    ("E077", True, {}, cachalot(CACHALOT_UNCACHABLE_APPS=["shop"])),
    ("E077", False, {}, cachalot(CACHALOT_UNCACHABLE_APPS=("django_identity",))),
    ("E077", False, {}, cachalot(CACHALOT_ENABLED=False)),
    # In live it never passes; on a server, in no environment.
    ("E018", True, {**LIVE, "WEBHOOK_SECRETS": SANDBOX["WEBHOOK_SECRETS"]}, {}),
    ("E018", True, {**LIVE, "CLIENT_SECRET": SANDBOX["CLIENT_SECRET"]}, {}),
    ("E018", False, SANDBOX, {}),
    ("E018, deploy", True, SANDBOX, {}),
    ("E018, deploy", False, OWN, {}),
    # The sandbox's tables are not made in the site's database.
    *(("E013", is_reported, {}, listing(setting, f"django_identity.{entry}"))
      for setting, entry, is_reported in (
          ("INSTALLED_APPS", "sandbox", True), ("INSTALLED_APPS", "testing", True),
          ("INSTALLED_APPS", "sandbox.apps.SandboxConfig", True),
          ("MIDDLEWARE", "sandbox.middleware.SandboxMiddleware", True),
          ("MIDDLEWARE", "sandboxes.Middleware", False))),
]  # fmt: skip


@pytest.mark.parametrize(("check", "is_reported", "application", "of_django"), ROWS)
@SECURE
def test_each_mistake_is_reported_by_its_own_check(
    check, is_reported, application, of_django
):
    number, _, deploy = check.partition(", ")
    with configured(**application), override_settings(**of_django):
        found = messages(number, deploy=bool(deploy))
    assert bool(found) is is_reported
    if number == "E013":
        assert all(setting in each for setting in of_django for each in found)


@SECURE
def test_a_live_site_passes_all():
    with configured(**LIVE):
        assert check_ids() == set()


def test_one_line_configures_a_site():
    """Every check passes on a development machine, and the values are those of the check."""
    with override_settings(DJANGO_IDENTITY=SANDBOX):
        assert not conf.problems()
    elsewhere = sandbox_application("http://127.0.0.1:9500")
    assert elsewhere["SERVICE_ACCOUNT_URL"] == "http://127.0.0.1:9500/account/"
    assert elsewhere == sandbox_application("http://127.0.0.1:9500/")
    values = [SANDBOX["CLIENT_ID"], SANDBOX["CLIENT_SECRET"]]
    for value in (*values, *SANDBOX["WEBHOOK_SECRETS"]):
        assert value.startswith(site.SANDBOX_VALUES)


@pytest.mark.urls("tests.gates.scope_and_step_up_urls")
def test_a_gate_for_a_scope_that_nobody_is_asked_for():
    """It would send people to the service and back without an end."""
    for scope, is_reported in (("document:read", True), ("documents:read", False)):
        with configured(LATER_SCOPES=[scope]):
            assert reported("E075") is is_reported
    with override_settings(ROOT_URLCONF="tests.instruments.broken_urls"):
        assert not list(gates.problems())


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("shop.policy.Policy", "No module named 'shop'"),
        ("tests.test_checks.Polici", 'does not define a "Polici" attribute/class'),
    ],
)
def test_a_policy_that_cannot_be_imported(path, cause):
    """The check says why: a module is missing, or the name in it."""
    with configured(POLICY=path):
        (found,) = [each for each in run_checks() if each.id == "django_identity.E010"]
    assert path in found.msg
    assert cause in found.msg


# The user model, of which each sign-up makes a row


def demands_country(self: Any, username: str, country: str, email: str = "") -> None:
    """As some sites have it: what nobody gives is an error."""


def demands_number(self: Any, username: str, *, number: int, **more: Any) -> None:
    """The same, by name alone."""


def fills_itself(self: Any, username: str, email: str, password: str = "") -> None:
    """What a profile may lack gets an empty text, and ``password`` is always given."""


@pytest.mark.parametrize(
    ("create_user", "is_reported"),
    [(demands_country, True), (demands_number, True), (fills_itself, False)],
)
def test_what_create_user_demands_and_nobody_gives(
    monkeypatch, create_user, is_reported
):
    """The package's own policy fills name and address; a site's own is its own to test."""
    with configured():
        assert not reported("E041")
        monkeypatch.setattr(UserManager, "create_user", create_user)
        assert reported("E041") is is_reported
        with configured(POLICY="tests.test_checks.OwnFields"):
            assert not reported("E041")


@pytest.mark.parametrize("name", ["username", "email", "last_name"])
def test_what_the_user_model_refuses_of_a_sign_up(monkeypatch, name):
    monkeypatch.setattr(User._meta.get_field(name), "choices", [("a", "A")])
    with configured():
        assert reported("E041")


UNIQUE = UniqueConstraint(fields=["email"], name="one")
IN_SMALL_LETTERS = UniqueConstraint(Lower("email"), name="one")
TOGETHER = UniqueConstraint(fields=["email", "is_staff"], name="one")
IF_THERE_IS_ONE = UniqueConstraint(fields=["email"], condition=~Q(email=""), name="one")


@pytest.mark.parametrize(
    ("constraint", "more", "is_reported"),
    [
        (UNIQUE, "", True), (UNIQUE, "profile:read", False), (UNIQUE, "may be null", False),
        (IN_SMALL_LETTERS, "", True), (TOGETHER, "", False), (IF_THERE_IS_ONE, "", False),
    ],
    ids=str,
)  # fmt: skip
def test_a_unique_field_that_stays_empty(monkeypatch, constraint, more, is_reported):
    """Without a profile all new people would have the same address: none."""
    monkeypatch.setattr(User._meta, "constraints", [constraint])
    monkeypatch.setattr(User._meta.get_field("email"), "null", more == "may be null")
    with configured(SCOPES=["claims:read", *([more] if ":" in more else [])]):
        assert reported("E041") is is_reported


def test_a_required_field_without_a_profile(monkeypatch):
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
def test_a_default_of_the_user_model(field, monkeypatch):
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


def test_fields_that_an_erasure_leaves(monkeypatch):
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
def test_a_rule_that_refuses_a_blank_account(monkeypatch, condition, clean, named):
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


@pytest.mark.parametrize("ours", [LinkedIdentity, StoredClaim])
@pytest.mark.parametrize(
    "on_delete", [models.PROTECT, models.RESTRICT, models.DO_NOTHING]
)
@pytest.mark.usefixtures("of_the_leaky_site")
def test_a_row_of_the_site_that_protects_ours(ours, on_delete):
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


@pytest.mark.parametrize("ours", [TokenGrant, AuthorizationRequest])
@pytest.mark.usefixtures("of_the_leaky_site")
def test_no_row_of_the_site_points_at_what_is_deleted_by_a_statement(ours):
    """A revocation would fail for ever, whatever the field does on a deletion."""
    site_model("Loan", of=key_to(ours, erasures.CASCADES[-1]))
    with configured():
        [found] = messages("E032")
    assert "leaky.Loan.of." in found


@pytest.mark.usefixtures("of_the_leaky_site")
def test_a_row_that_a_parent_or_a_generic_relation_brings():
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
def test_a_row_of_the_site_that_lets_ours_go():
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
