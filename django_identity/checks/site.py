"""What all applications need of the site: addresses, sessions, cookies, databases and caches."""

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections, router
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, reverse

from django_identity import conf, database
from django_identity.backends import BACKEND_PATH
from django_identity.conf.rules import Problem
from django_identity.service.http import environment_problem

NOT_FOR_SITES = ("django_identity.sandbox.", "django_identity.testing.")
# The prefix of the public credentials of ``django_identity.sandbox.sandbox_application``.
SANDBOX_VALUES = "sandbox-local-site"


def development_problems() -> Iterator[Problem]:
    """The sandbox and the fixtures are for development and tests alone."""
    installed = [config.name for config in apps.get_app_configs()]
    for setting, paths in (("INSTALLED_APPS", installed), ("MIDDLEWARE", settings.MIDDLEWARE)):
        for path in paths:
            if f"{path}.".startswith(NOT_FOR_SITES):
                yield Problem(
                    "E013",
                    f"{setting} has {path!r}, which is for development and tests: it opens the "
                    "site.",
                    "Remove it. The sandbox is a process: python -m django_identity.sandbox",
                )


def sandbox_problems() -> Iterator[Problem]:
    """The public credentials of the sandbox, for a deployed or a live site."""
    for application in conf.applications():
        secrets = (application.client_secret, *application.webhook_secrets)
        values = (application.client_id, *(secret.reveal() for secret in secrets))
        if any(value.startswith(SANDBOX_VALUES) for value in values):
            yield Problem(
                "E018",
                f"The application {application.alias!r} has the credentials of "
                "sandbox_application(), which are public: anybody could sign an event for this "
                "site.",
                "Use them only on a development machine. Register other sites.",
            )


def environment_problems() -> Iterator[Problem]:
    """Test people beside real ones. Anybody can make a test person with any address at all."""
    environments = {each.environment for each in conf.applications()}
    if len(environments) > 1:
        yield Problem(
            "E068",
            "A test application stands beside a live one: a made-up person of the test "
            "environment can sign up on the site of real people.",
            "Give the test application a site and a database of its own.",
        )


def problems() -> Iterator[Problem]:
    live = [each for each in conf.applications() if each.environment == "live"]
    yield from _pages()
    yield from _databases()
    if live:
        yield from sandbox_problems()
        yield from _live(live)
    if problem := environment_problem():
        yield Problem(
            "E014",
            f"The environment's certificate authority or proxy cannot be used ({problem}): every "
            "call of the service would fail.",
            "SSL_CERT_FILE is a file of PEM certificates; HTTPS_PROXY has the form "
            "http://[user:password@]host:port.",
        )
    if not settings.USE_TZ:
        said = "USE_TZ is off: the times of claims and revocations could not be compared."
        hint = "Set USE_TZ = True. Only the TIME_ZONE of pages is a matter of taste."
        yield Problem("E039", said, hint)


def _live(live: list[conf.Application]) -> Iterator[Problem]:
    """Without ``Secure`` a browser also sends the cookie over plain http."""
    for setting in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        if not getattr(settings, setting):
            hint = f"Set {setting} = True, and serve the site only over https."
            yield Problem("E011", f"{setting} is not set, and an application is live.", hint)
    of_live = {secret for each in live for secret in each.webhook_secrets}
    others = [each for each in conf.applications() if each.environment != "live"]
    if of_live & {secret for each in others for secret in each.webhook_secrets}:
        yield Problem(
            "E036",
            "A test application and a live one have the same webhook secret: an event of the test "
            "environment could be sent to the live webhook.",
            "Rotate the secret of the test application.",
        )


def _pages() -> Iterator[Problem]:
    if BACKEND_PATH not in settings.AUTHENTICATION_BACKENDS:
        yield Problem(
            "E009",
            "The identity backend is not in AUTHENTICATION_BACKENDS: nobody would stay signed in.",
            f"Add {BACKEND_PATH!r}.",
        )
    try:
        reverse("identity:login")
    except NoReverseMatch:
        yield Problem(
            "E040",
            "django_identity.urls is not in the ROOT_URLCONF: there is no login page, no callback "
            "and no webhook.",
            'Add path("identity/", include("django_identity.urls")).',
        )
    try:
        resolve_url(getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None) or "/")
    except NoReverseMatch:
        said = "IDENTITY_LOCAL_SIGN_IN_URL is neither an address nor a URL name."
        hint = "Set it to the site's own sign-in page, or to None if there is no such page."
        yield Problem("E012", said, hint)


def _databases() -> Iterator[Problem]:
    """One database has all tables. With SQLite a transaction begins with its lock."""
    for model in (get_user_model(), *apps.get_app_config("django_identity").get_models()):
        written_to = router.db_for_write(model)
        if written_to != database.alias():
            yield Problem(
                "E035",
                f"The router writes {model._meta.label} to the database {written_to!r}, and linked "
                f"identities to {database.alias()!r}.",
                "Let DATABASE_ROUTERS send all models of django_identity, and AUTH_USER_MODEL "
                "to which they refer, to one database.",
            )
    if database.alias() not in connections or database.connection().vendor != "sqlite":
        return
    if database.connection().settings_dict["OPTIONS"].get("transaction_mode") != "IMMEDIATE":
        yield Problem(
            "W003",
            "SQLite begins transactions without a lock: of two requests that write at the same "
            "time one may fail.",
            'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20} in DATABASES.',
        )
