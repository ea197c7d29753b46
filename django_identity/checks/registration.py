"""What the registration needs: secrets, addresses, and its policy."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import urlsplit

from django.conf import settings

from django_identity import policy
from django_identity.checks import erasures, sign_ups
from django_identity.conf import Application
from django_identity.conf.rules import ADDRESSES, Problem, Problems, is_loopback
from django_identity.exceptions import ConfigurationError
from django_identity.policy import IdentityPolicy


def problems_of(application: Application) -> Problems:
    yield from _secrets(application)
    yield from _addresses(application)
    try:
        rules = policy.load(application.policy)
    except ConfigurationError as error:
        yield Problem("E010", str(error), "POLICY is the dotted path of a class.")
        return

    # What the package's own methods do not do. A site's own method is for the site to test.
    if type(rules).new_user_fields is IdentityPolicy.new_user_fields:
        yield from sign_ups.problems_of(rules, application)
    if type(rules).erase_user.__module__.startswith("django_identity."):
        yield from erasures.problems_of(rules)


def _secrets(application: Application) -> Problems:
    is_live = application.environment == "live"
    if application.document_keys and find_spec("joserfc") is None:
        yield Problem(
            "E067",
            "DOCUMENT_KEYS are set, and joserfc is missing.",
            'Install the extra "trusted" of django-identity: docs/documents.md',
        )

    if not application.webhook_secrets:
        yield Problem(
            "W025",
            "There are no WEBHOOK_SECRETS: the webhook refuses every event, "
            "and a revocation is seen only when the credential runs out.",
            "Register the webhook at the service, and set the secret that it shows.",
        )

    if is_live and settings.DEBUG:
        yield Problem(
            "E038",
            "DEBUG is on, and ENVIRONMENT is live: error pages would show people's "
            "data.",
            "Set DEBUG = False, or use the test credentials.",
        )

    if is_live and application.encryption_keys[0].reveal() == settings.SECRET_KEY:
        yield Problem(
            "W026",
            "ENVIRONMENT is live without ENCRYPTION_KEYS: tokens are encrypted "
            "with SECRET_KEY, and are lost when it changes.",
            "Set ENCRYPTION_KEYS to a list with a random text of its own and, behind it, "
            "SECRET_KEY, until identity_rotate_keys has run.",
        )


def _addresses(application: Application) -> Problems:
    for name in ADDRESSES:
        parts = urlsplit(getattr(application, name.lower()) or "")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            yield Problem(
                "W004",
                f"{name} is plain http to another machine: secrets "
                "and tokens travel unencrypted.",
                "Use https, unless nobody else can read that network.",
            )

    # Other people may own hosts of a wildcard domain.
    is_open = any(
        host == "*" or host.startswith(".") for host in settings.ALLOWED_HOSTS
    )
    if is_open and application.redirect_uri is None:
        yield Problem(
            "W001",
            "ALLOWED_HOSTS has a wildcard, and the callback address is built from the request's "
            "host.",
            "Set REDIRECT_URI.",
        )
