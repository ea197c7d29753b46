"""What an erasure leaves of a person, and what would refuse it."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import models

from django_identity import anonymisation, database, uniqueness
from django_identity.checks import sign_ups
from django_identity.conf.rules import Problem, Problems
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import dossier
from django_identity.policy import IdentityPolicy
from django_identity.uniqueness import Column

#: What deletes the rows that point at a deleted one; since Django 6.1 the database may do it.
CASCADES = (models.CASCADE, getattr(models, "DB_CASCADE", models.CASCADE))


def problems_of(rules: IdentityPolicy) -> Problems:
    """What the package's own ``erase_user`` leaves of an account, and what refuses the rest."""
    if rules.erasure != "anonymise":
        return
    model = get_user_model()
    left = anonymisation.cannot_blank(model)
    if left:
        yield Problem(
            "W032",
            f"An erasure leaves these fields of {model._meta.label} as they are: "
            f"{', '.join(left)}.",
            "If they say something about the person, let them be empty (null=True), or empty them "
            "in erase_user() of the policy.",
        )
    refusing: set[str] = set()
    for each in anonymisation.models_of_account(model):
        refusing.update(_refusing(each))
    if refusing:
        names = ", ".join(sorted(refusing))
        yield Problem(
            "W032",
            f"A blank account is refused by {names}: an erasure would stay pending.",
            "Let the rule pass an account whose fields are empty, or write erase_user() in the "
            "policy.",
        )


def _refusing(model: type[AbstractBaseUser]) -> Iterator[str]:
    """The rules of ``model`` that a blank account breaks: constraints by name, and ``clean``."""
    fields = model._meta.concrete_fields
    # ``migrate`` runs the checks too, when there may be no tables.
    unknown = {
        field.name for field in fields if field.is_relation or sign_ups.may_query(field)
    }
    account = model(**dict.fromkeys(unknown))
    blank = anonymisation.blank(account, leave=unknown)
    flags = {field.name for field in fields if isinstance(field, models.BooleanField)}
    computed = {field.name for field in fields if field.generated}
    others = database.field_names(model) - blank - flags - computed
    for owner, constraints in account.get_constraints():
        for constraint in constraints:
            # The others ask the table.
            if not isinstance(constraint, models.CheckConstraint):
                continue
            if blank & uniqueness.names_in(owner, constraint.condition):
                try:
                    constraint.validate(owner, account, others, database.alias())
                except ValidationError:
                    yield constraint.name
    try:
        account.clean()
    except ValidationError:
        yield account.clean.__qualname__
    except Exception:  # noqa: BLE001  the site's own code may need what a blank account lacks
        return


def problems() -> Problems:
    """A row of the site that protects one of ours would keep a person's data."""
    names = sorted(_protecting())
    if names:
        yield Problem(
            "E032",
            f"Rows of the site would keep a person's data from being erased: {', '.join(names)}.",
            "Let on_delete of these fields be CASCADE or SET_NULL, and let them point at the user "
            "or at LinkedIdentity: grants and sign-ins are deleted without a look at other rows.",
        )


def _protecting() -> Iterator[str]:
    """The fields by which a row refuses a deletion that collects what points at a person's rows."""
    deleted: list[Any] = [place.model for place in dossier.PLACES]
    restricting: list[Column] = []
    # The list grows meanwhile.
    for model in deleted:
        for relation in _relations_to(model):
            # A generic relation has none, and its rows are deleted.
            on_delete = getattr(relation, "on_delete", models.CASCADE)
            if model in withdrawal.RAW_DELETED:
                yield _label(relation.field)
            elif on_delete in CASCADES and relation.related_model not in deleted:
                deleted.append(relation.related_model)
            elif on_delete is models.RESTRICT:
                restricting.append(relation.field)
            elif on_delete is models.PROTECT or _is_constraint(relation, on_delete):
                yield _label(relation.field)
    for field in restricting:
        # What is deleted by another relation restricts nothing.
        if field.model not in deleted:
            yield _label(field)


def _relations_to(model: type[models.Model]) -> Iterator[Any]:
    """The foreign keys of other rows to those of ``model``, and its generic relations."""
    for relation in model._meta.get_fields(include_hidden=True):
        is_from_row = relation.one_to_many or relation.one_to_one
        if is_from_row and not relation.concrete:
            yield relation


def _is_constraint(relation: Any, on_delete: object) -> bool:
    """Whether only the database looks after the relation, and would refuse."""
    if on_delete is not models.DO_NOTHING:
        return False
    return bool(relation.field.db_constraint and relation.field.model._meta.managed)


def _label(field: Column) -> str:
    return f"{field.model._meta.label}.{field.name}"
