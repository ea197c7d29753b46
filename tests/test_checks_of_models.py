"""Checks of the site's own models: what refuses a sign-up, a blank account or an erasure."""

from collections.abc import Iterator
from datetime import date
from typing import Any, ClassVar

import pytest
from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, User, UserManager
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.db.models.functions import Lower
from django.test.utils import isolate_apps
from django.utils import timezone

from django_identity import anonymisation
from django_identity.checks import erasures, sign_ups
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from django_identity.policy import IdentityPolicy
from tests.test_checks import messages
from tests.test_conf import configured

# From 6.1 on, Django's own checks ask the database.
pytestmark = pytest.mark.django_db


class OwnErasure(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """Nothing: the site's own way."""


class Deleting(IdentityPolicy):
    erasure = "delete"


class OwnFields(IdentityPolicy):
    def new_user_fields(self, **_about: Any) -> dict[str, Any]:
        return {"username": "chosen-by-the-site"}


def reported(number: str, **given: Any) -> list[str]:
    with configured(**given):
        return messages(number)


def demands_country(self: Any, username: str, country: str, email: str = "") -> None:
    """As some sites have it: what nobody gives is an error."""


def demands_number(self: Any, username: str, *, number: int, **more: Any) -> None:
    """The same, by name alone."""


def fills_itself(self: Any, username: str, email: str, password: str = "") -> None:
    """What a profile may lack gets an empty text, and ``password`` is always given."""


def with_create_user(create_user: Any) -> Any:
    return [(UserManager, "create_user", create_user)]


def with_field(name: str, **attributes: Any) -> Any:
    field = User._meta.get_field(name)
    return [(field, attribute, value) for attribute, value in attributes.items()]


def with_constraint(*expressions: Any, **options: Any) -> Any:
    constraint = UniqueConstraint(*expressions, name="one", **options)
    return [(User._meta, "constraints", [constraint])]


NO_PROFILE = {"SCOPES": ["claims:read"]}
PROFILE = {"SCOPES": ["claims:read", "profile:read"]}
OWN = {"POLICY": f"{__name__}.OwnFields"}
UNIQUE = with_constraint(fields=["email"])
#: How the user model of a site is, its settings, and whether a sign-up would be refused.
SIGN_UPS: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "Django's": ([], {}, False),
    # The package's own policy fills name and address; a site's own is its own to test.
    "fills itself": (with_create_user(fills_itself), {}, False),
    "demands a country": (with_create_user(demands_country), {}, True),
    "demands a number": (with_create_user(demands_number), {}, True),
    "demands what the policy gives": (with_create_user(demands_country), OWN, False),
    **{
        f"choices of {name}": (with_field(name, choices=[("a", "A")]), {}, True)
        for name in ("username", "email", "last_name")
    },
    # Without a profile all new people would have the same address: none.
    "unique": (UNIQUE, NO_PROFILE, True),
    "unique, of a profile": (UNIQUE, PROFILE, False),
    "unique or null": (UNIQUE + with_field("email", null=True), NO_PROFILE, False),
    "unique in small letters": (with_constraint(Lower("email")), NO_PROFILE, True),
    "unique together": (
        with_constraint(fields=["email", "is_staff"]),
        NO_PROFILE,
        False,
    ),
    "unique if there is one": (
        with_constraint(fields=["email"], condition=~Q(email="")),
        NO_PROFILE,
        False,
    ),
    # Nobody gives it, so it gets what the user model has for it, as ``create_user`` does.
    "a required name": (with_field("last_name", blank=False), NO_PROFILE, False),
    "a required name, of a profile": (
        with_field("last_name", blank=False),
        PROFILE,
        False,
    ),
}


@pytest.mark.parametrize("model", SIGN_UPS)
def test_what_the_user_model_refuses_of_a_sign_up(monkeypatch, model):
    changes, given, is_reported = SIGN_UPS[model]
    for owner, name, value in changes:
        monkeypatch.setattr(owner, name, value)
    assert bool(reported("E041", **given)) is is_reported


def test_fields_that_an_erasure_leaves(monkeypatch):
    """They are named; a site that erases in its own way knows its own fields."""
    assert not reported("W032")
    monkeypatch.setattr(anonymisation, "cannot_blank", lambda _model: ["shoe_size"])
    assert reported("W032")
    for policy in ("OwnErasure", "Deleting"):
        assert not reported("W032", POLICY=f"{__name__}.{policy}")


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
    """Every erasure would stay pending. No rule is asked of what no blank account is sure of.

    A default that may be a query is not asked for: ``migrate`` runs the checks without tables.
    """

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
        last_name = models.CharField(max_length=150)
        email = models.EmailField()
        count = models.IntegerField(default=User.objects.count)
        first = models.CharField(max_length=9, default=lambda: User.objects.get().pk)
        made_by = models.ForeignKey(User, models.CASCADE, "+", default=1)
        note = models.CharField(max_length=40, default="")
        joined_at = models.DateTimeField(default=timezone.now)

        USERNAME_FIELD = "username"

        class Meta:
            app_label = "leaky"
            constraints: ClassVar = [
                models.CheckConstraint(condition=condition, name="has_a_name"),
            ]

    if clean:
        monkeypatch.setattr(Member, "clean", clean)
    for checks in (erasures, sign_ups):
        monkeypatch.setattr(checks, "get_user_model", lambda: Member)

    found = reported("W032")

    assert not reported("E079")
    assert [named in each for each in found] == [True] * bool(named)


# Rows of the site that point at ours


@pytest.fixture(autouse=True)
def _of_the_leaky_site() -> Iterator[None]:
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
    "on_delete",
    [models.PROTECT, models.RESTRICT, models.DO_NOTHING],
)
def test_a_row_of_the_site_that_protects_ours(ours, on_delete):
    """The person's data would stay. The field is named, however far it is from our row."""
    loan = site_model("Loan", of=key_to(ours, erasures.CASCADES[-1]))
    assert not reported("E032")
    site_model("Fine", loan=key_to(loan, on_delete))
    site_model("Stamp", of=key_to(ours, on_delete))
    [found] = reported("E032")
    assert "leaky.Fine.loan, leaky.Stamp.of." in found


@pytest.mark.parametrize("ours", [TokenGrant, AuthorizationRequest])
def test_no_row_of_the_site_points_at_what_is_deleted_by_a_statement(ours):
    """A revocation would fail for ever, whatever the field does on a deletion."""
    site_model("Loan", of=key_to(ours, erasures.CASCADES[-1]))
    [found] = reported("E032")
    assert "leaky.Loan.of." in found


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
    [found] = reported("E032")
    assert "leaky.Mark.tag, leaky.Seal.thing." in found


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
    assert not reported("E032")
