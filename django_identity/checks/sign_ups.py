"""Whether the user model takes what a sign-up gives it, by the policy's own default."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Field

from django_identity import policy, uniqueness
from django_identity.conf import Application
from django_identity.conf.rules import Problem, Problems
from django_identity.lifecycle.accounts import refused_by
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile

FULL_PROFILE = Profile(
    id="somebody",
    email="somebody@example.org",
    first_name="Some",
    last_name="Body",
    country="NG",
)
#: Without ``profile:read`` the service says no more.
BARE_PROFILE = Profile(id="somebody")


def problems_of(site: IdentityPolicy, application: Application) -> Problems:
    """What a new user must have, and the policy's own default does not give."""
    profile = FULL_PROFILE if "profile:read" in application.scopes else BARE_PROFILE
    values = site.new_user_fields(profile=profile, kyc=None)
    model = get_user_model()
    # ``migrate`` runs the checks too, when there may be no tables.
    querying = {field.name for field in model._meta.fields if _may_query(field)}
    unknown = querying - values.keys()
    user = model(**values, **dict.fromkeys(unknown))
    hint = "Write new_user_fields() in the policy."

    validate = partial(user.clean_fields, exclude=["password", *unknown])
    names = ", ".join(sorted(refused_by(validate)))
    if names:
        yield Problem(
            "E041",
            f"A sign-up does not fill these fields of {user._meta.label} validly: {names}. Every "
            "new person would be refused.",
            hint,
        )
    names = ", ".join(_same_for_everybody(user))
    if names:
        yield Problem(
            "E073",
            f"A sign-up leaves these unique fields of {user._meta.label} empty, and they may not "
            f"be NULL: {names}. Every new person but the first would be refused.",
            "Let them be NULL (null=True), add profile:read to SCOPES, or write "
            "new_user_fields() in the policy.",
        )


def _may_query(field: Field[Any, Any]) -> bool:
    """Whether the field's default may ask the database, or its validation, as a foreign key's."""
    if not field.has_default():
        return False
    return callable(field.default) or field.is_relation


def _same_for_everybody(user: AbstractBaseUser) -> Iterator[str]:
    """The names of unique texts of the profile that are empty and may not be NULL."""
    for field in user._meta.concrete_fields:
        if field.name not in policy.PROFILE_FIELDS or field.null:
            continue
        rules = uniqueness.rules_of(field.model)
        is_alone = any(
            rule.columns == (field,) and not rule.has_condition for rule in rules
        )
        if is_alone and getattr(user, field.attname) == "":
            yield field.name
