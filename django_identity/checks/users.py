"""The user model: what a sign-up and a session need of it."""

from collections.abc import Iterator

from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models

from django_identity import conf, policy
from django_identity.exceptions import ConfigurationError
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile

SOMEBODY = Profile(
    id="somebody", email="somebody@example.org", first_name="Some", last_name="Body", country="NG"
)


def problems() -> Iterator[CheckMessage]:
    model = get_user_model()
    try:
        model._meta.get_field("is_active")
    except FieldDoesNotExist:
        yield Warning(
            f"{model._meta.label} has no column is_active: no account can be disabled, and an "
            "erasure cannot shut one.",
            hint='Add is_active, or set erasure = "delete" in the policy.',
            id="django_identity.W030",
        )
    key = model._meta.pk
    is_text = isinstance(key, models.CharField | models.TextField)
    if is_text and key.name in {model.USERNAME_FIELD, model.get_email_field_name()}:
        yield Warning(
            f"The primary key of {model._meta.label} is {key.name!r}, which names the person. An "
            "erasure cannot change a key.",
            hint="Use a key without meaning, such as a number or a UUID, or set "
            'erasure = "delete" in the policy.',
            id="django_identity.W031",
        )


def problems_of(application: conf.Application) -> Iterator[CheckMessage]:
    """Fields that a new user must have, and that the policy's own default does not fill."""
    try:
        site = policy.load(application.policy)
    except ConfigurationError:
        return
    # What a site's own method does, is for the site to test.
    if type(site).new_user_fields is not IdentityPolicy.new_user_fields:
        return
    given = site.new_user_fields(profile=SOMEBODY, kyc=None)
    try:
        get_user_model()(**given).clean_fields(exclude=["password"])
    except ValidationError as invalid:
        names = ", ".join(sorted(invalid.message_dict))
        yield Error(
            f"A sign-up does not fill these fields of {get_user_model()._meta.label} validly: "
            f"{names}. Every new person would be refused.",
            hint=f"Write new_user_fields() in the policy of the application {application.alias!r}.",
            id="django_identity.E041",
        )
