"""The applications: their keys in ``DJANGO_IDENTITY``, their policy, and what they need beside."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from django_identity import conf, policy
from django_identity.conf.rules import ADDRESSES, is_loopback
from django_identity.exceptions import ConfigurationError
from django_identity.service.http import environment_problem


def check_applications(**_kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_IDENTITY`` itself (E001 to E008, and others that ``conf.problems`` finds)."""
    return [
        Error(problem.message, hint=problem.hint, id=f"django_identity.{problem.check_id}")
        for problem in conf.problems()
    ]


def problems_of(application: conf.Application) -> Iterator[CheckMessage]:
    alias, is_live = application.alias, application.environment == "live"
    try:
        policy.load(application.policy)
    except ConfigurationError as error:
        hint = "POLICY is the dotted path of a class."
        yield Error(str(error), hint=hint, id="django_identity.E010")
    if application.document_keys and find_spec("joserfc") is None:
        yield Error(
            f"The application {alias!r} has DOCUMENT_KEYS, and joserfc is missing.",
            hint='Install the extra: pip install "django-identity[trusted]"',
            id="django_identity.E067",
        )
    if urlsplit(application.auth_url).path.rstrip("/").endswith("/oauth2"):
        yield Error(
            f"AUTH_URL of the application {alias!r} ends in /oauth2. The package adds "
            "/oauth2/auth and /oauth2/token itself.",
            hint=f"Set AUTH_URL = {application.auth_url.removesuffix('/oauth2')!r}.",
            id="django_identity.E037",
        )
    plain = [
        name
        for name in ADDRESSES
        if (parts := urlsplit(getattr(application, name.lower()) or "")).scheme == "http"
        and not is_loopback(parts.hostname)
    ]
    if plain:
        yield Warning(
            f"{plain[0]} of the application {alias!r} is plain http to another machine: secrets "
            "and tokens travel unencrypted.",
            hint="Use https, unless nobody else can read that network.",
            id="django_identity.W004",
        )
    if not application.webhook_secrets:
        yield Warning(
            f"The application {alias!r} has no WEBHOOK_SECRETS: its webhook refuses every event, "
            "and a revocation is seen only when the credential runs out.",
            hint="Register the webhook at the service, and set the secret that it shows.",
            id="django_identity.W025",
        )
    if is_live and settings.DEBUG:
        yield Error(
            f"DEBUG is on, and the application {alias!r} is live: error pages would show people's "
            "data.",
            hint="Set DEBUG = False, or use the application's test credentials.",
            id="django_identity.E038",
        )
    if is_live and application.encryption_keys[0].reveal() == settings.SECRET_KEY:
        yield Warning(
            f"The application {alias!r} is live without ENCRYPTION_KEYS: tokens are encrypted "
            "with SECRET_KEY, and are lost when it changes.",
            hint="Set ENCRYPTION_KEYS to a list with a random text of its own.",
            id="django_identity.W026",
        )


def problems() -> Iterator[CheckMessage]:
    yield from _client_problems()
    yield from _secret_problems()


def _client_problems() -> Iterator[CheckMessage]:
    if problem := environment_problem():
        yield Error(
            f"The environment's certificate authority or proxy cannot be used ({problem}): every "
            "call of the service would fail.",
            hint="SSL_CERT_FILE is a file of PEM certificates; HTTPS_PROXY has the form "
            "http://[user:password@]host:port.",
            id="django_identity.E014",
        )


def _secret_problems() -> Iterator[CheckMessage]:
    """A secret of both environments: whoever signs test events could sign live ones."""
    test, live = (
        {
            secret
            for application in conf.applications()
            if application.environment == environment
            for secret in application.webhook_secrets
        }
        for environment in ("test", "live")
    )
    if test & live:
        yield Error(
            "A test application and a live one have the same webhook secret: an event of the test "
            "environment could be sent to the live webhook.",
            hint="Rotate the secret of the test application.",
            id="django_identity.E036",
        )
