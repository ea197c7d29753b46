"""The user model: what a sign-up and a session need of it."""

from collections.abc import Iterator

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ValidationError
from django.utils.module_loading import import_string

from django_identity import anonymisation, conf, policy
from django_identity.exceptions import ConfigurationError
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile

SOMEBODY = Profile(
    id="somebody", email="somebody@example.org", first_name="Some", last_name="Body", country="NG"
)


def problems_of(application: conf.Application) -> Iterator[CheckMessage]:
    """What the policy's own defaults do not do. A site's own method is for the site to test."""
    try:
        site = policy.load(application.policy)
    except ConfigurationError:
        return
    if type(site).new_user_fields is IdentityPolicy.new_user_fields:
        yield from _unfilled(application, site)
    if type(site).erase_user.__module__.startswith("django_identity."):
        yield from _history(application)
        if site.erasure == "anonymise":
            yield from _left(application)


def _history(application: conf.Application) -> Iterator[CheckMessage]:
    """Former versions of the user, which an erasure would leave."""
    model = get_user_model()
    if hasattr(model._meta, "simple_history_manager_attribute"):
        kept_by = "django-simple-history"
    elif apps.is_installed("reversion") and import_string("reversion.is_registered")(model):
        kept_by = "django-reversion"
    else:
        return
    yield Warning(
        f"{kept_by} keeps former versions of {model._meta.label}, and an erasure leaves them.",
        hint="Delete them too, in erase_user() in the policy of the application "
        f"{application.alias!r}.",
        id="django_identity.W033",
    )


def _left(application: conf.Application) -> Iterator[CheckMessage]:
    """Fields that an erasure would leave as they are."""
    if names := anonymisation.cannot_blank(get_user_model()):
        yield Warning(
            f"An erasure leaves these fields of {get_user_model()._meta.label} as they are: "
            f"{', '.join(names)}.",
            hint=f"If they say something about the person, empty them in erase_user() in the "
            f"policy of the application {application.alias!r}, or let them be empty (null=True).",
            id="django_identity.W032",
        )


def _unfilled(application: conf.Application, site: IdentityPolicy) -> Iterator[CheckMessage]:
    """Fields that a new user must have, and that the policy's own default does not fill."""
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
