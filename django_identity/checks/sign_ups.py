"""Whether the user model takes what a sign-up gives it, by the policy's own default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Field

from django_identity import policy, uniqueness
from django_identity.conf import Application
from django_identity.conf.rules import Problem, Problems
from django_identity.lifecycle.arriving import accounts
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


def problems_of(rules: IdentityPolicy, application: Application) -> Problems:
    """What a new user must have beyond the policy's default."""
    profile = FULL_PROFILE if "profile:read" in application.scopes else BARE_PROFILE
    values = rules.new_user_fields(profile=profile, kyc=None)
    model = get_user_model()
    # ``migrate`` runs the checks too, when there may be no tables.
    querying = {field.name for field in model._meta.fields if may_query(field)}
    unknown = querying - values.keys()
    user = model(**values, **dict.fromkeys(unknown))
    of_profile = policy.profile_fields().values()
    demanded = accounts.demanded_by(accounts.manager().create_user)
    missing = demanded - values.keys() - {"password", *of_profile}
    refused = accounts.refused_of_given(user, values)
    names = ", ".join(sorted(refused | missing | {*_same_for_everybody(user)}))
    if names:
        yield Problem(
            "E041",
            f"A sign-up does not fill these fields of {user._meta.label} validly: {names}. New "
            "people would be refused; for a unique field that stays empty, all but the first.",
            "Write new_user_fields() in the policy. Or add profile:read to SCOPES, or let a unique "
            "field be NULL (null=True).",
        )


def may_query(field: Field[Any, Any]) -> bool:
    """Whether the field's default may ask the database."""
    return field.has_default() and callable(field.default)


def _same_for_everybody(user: AbstractBaseUser) -> Iterator[str]:
    """The names of unique texts of the profile that are empty and may not be NULL."""
    of_profile = policy.profile_fields().values()
    for field in user._meta.concrete_fields:
        if field.name not in of_profile or field.null:
            continue
        alone = uniqueness.UniqueRule(frozenset({field.name}))
        is_alone = alone in uniqueness.rules_of(field.model)
        if is_alone and getattr(user, field.attname) == "":
            yield field.name
