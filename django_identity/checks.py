"""System checks for the settings, each with an id.

E001 to E008 come from ``conf.problems()``. ``docs/checks.md`` lists all checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connection
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from django_identity import background, conf, policy
from django_identity.backends import BACKEND_PATH
from django_identity.exceptions import ConfigurationError

LABEL = "django_identity"
CACHE_MIDDLEWARE = "django.middleware.cache.UpdateCacheMiddleware"
PROXY_SETTINGS = ("SECURE_PROXY_SSL_HEADER", "USE_X_FORWARDED_HOST", "USE_X_FORWARDED_PORT")
ISOLATED = {"postgresql", "mysql"}
NOT_FOR_SITES = ("django_identity.sandbox", "django_identity.testing")
# The prefix of the public credentials of ``django_identity.sandbox.sandbox_application``.
SANDBOX_VALUES = "sandbox-local-site"


def check_applications(**_kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_IDENTITY`` itself (E001 to E008)."""
    return [
        Error(problem.message, hint=problem.hint, id=f"{LABEL}.{problem.check_id}")
        for problem in conf.problems()
    ]


def check_development_only(**_kwargs: Any) -> list[CheckMessage]:
    """Check that a site does not install the sandbox or the test fixtures (E013)."""
    installed = [config.name for config in apps.get_app_configs()]
    named = {"INSTALLED_APPS": installed, "MIDDLEWARE": settings.MIDDLEWARE}
    return [
        Error(
            f"{setting} has {path!r}, which is for development and tests: it opens the site.",
            hint="Remove it. The sandbox is a separate process: python -m django_identity.sandbox",
            id=f"{LABEL}.E013",
        )
        for setting, paths in named.items()
        for path in paths
        if f"{path}.".startswith(tuple(f"{package}." for package in NOT_FOR_SITES))
    ]


def check_sandbox_application(**_kwargs: Any) -> list[CheckMessage]:
    """Refuse the sandbox's public credentials beside a live application (E018)."""
    is_live = any(each.get("ENVIRONMENT") == "live" for each in _given().values())
    return _sandbox_problems() if is_live else []


def check_deployed_sandbox_application(**_kwargs: Any) -> list[CheckMessage]:
    """Refuse them on every deployed site (E018, ``check --deploy``)."""
    return _sandbox_problems()


def check_installation(**_kwargs: Any) -> list[CheckMessage]:
    """Check the other settings that the package depends on: backend, broker, policy, hosts, …"""
    if any(problem.fatal for problem in conf.problems()):
        return []
    found = [
        *_backend_problems(), *_broker_problems(), *_isolation_problems(), *_cookie_problems(),
        *_local_sign_in_problems(), *_cache_problems(),
    ]  # fmt: skip
    for application in conf.applications():
        found += [
            *_policy_problems(application), *_host_problems(application),
            *_proxy_problems(application),
        ]  # fmt: skip
    return found


def _given() -> dict[str, dict[str, Any]]:
    """The applications in the setting, valid or not."""
    given = getattr(settings, "DJANGO_IDENTITY", None)
    applications = given.items() if isinstance(given, dict) else ()
    return {str(alias): each for alias, each in applications if isinstance(each, dict)}


def _sandbox_problems() -> list[CheckMessage]:
    """The applications with the sandbox's well-known credentials or webhook secret."""
    found: list[CheckMessage] = []
    for alias, given in _given().items():
        secrets = given.get("WEBHOOK_SECRETS")
        values = [given.get("CLIENT_ID"), given.get("CLIENT_SECRET")]
        values += secrets if isinstance(secrets, list | tuple) else []
        if any(isinstance(each, str) and each.startswith(SANDBOX_VALUES) for each in values):
            found.append(
                Error(
                    f"The application {alias!r} has the credentials of sandbox_application(), "
                    "which are public: anybody could sign an event for this site.",
                    hint="Use them only on a development machine. Register other sites.",
                    id=f"{LABEL}.E018",
                )
            )
    return found


def _backend_problems() -> Iterator[CheckMessage]:
    if BACKEND_PATH not in settings.AUTHENTICATION_BACKENDS:
        yield Error(
            "The identity backend is not in AUTHENTICATION_BACKENDS: nobody would stay signed in.",
            hint=f"Add {BACKEND_PATH!r}.",
            id=f"{LABEL}.E009",
        )


def _policy_problems(application: conf.Application) -> Iterator[CheckMessage]:
    try:
        policy.load(application.policy)
    except ConfigurationError as error:
        yield Error(str(error), hint="POLICY is the dotted path of a class.", id=f"{LABEL}.E010")


def _broker_problems() -> Iterator[CheckMessage]:
    """With Celery's defaults a broker that does not answer blocks publishing for minutes."""
    if background.has_broker() and not background.has_broker_timeout():
        yield Warning(
            "Connections to the broker have no time-out: a broker that hangs blocks publishing.",
            hint='Set CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, '
            '"socket_connect_timeout": 5} for Redis, {"read_timeout": 5, "write_timeout": 5, '
            '"connect_timeout": 5} for RabbitMQ.',
            id=f"{LABEL}.W002",
        )


def _isolation_problems() -> Iterator[CheckMessage]:
    """In a stricter isolation level a revocation may miss an identity that was just linked."""
    options = connection.settings_dict["OPTIONS"]
    if connection.vendor not in ISOLATED or "isolation_level" not in options:
        return
    given = options["isolation_level"]
    level = str(getattr(given, "name", given)).replace("_", " ").lower()
    # The default is READ COMMITTED in PostgreSQL, and stricter in MySQL and MariaDB.
    if level != "read committed" and (given is not None or connection.vendor == "mysql"):
        yield Warning(
            "The database's isolation level is not READ COMMITTED: a revocation may miss a person "
            "who is signing in at that moment.",
            hint='Remove "isolation_level" from the OPTIONS of DATABASES, or set READ COMMITTED.',
            id=f"{LABEL}.W003",
        )


def _cookie_problems() -> Iterator[CheckMessage]:
    """Without ``Secure`` a browser also sends the cookie over plain http."""
    if not any(application.environment == "live" for application in conf.applications()):
        return
    for setting in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        if not getattr(settings, setting):
            yield Error(
                f"{setting} is not set, and an application is live.",
                hint=f"Set {setting} = True, and serve the site only over https.",
                id=f"{LABEL}.E011",
            )


def _local_sign_in_problems() -> Iterator[CheckMessage]:
    given = getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None)
    if given is None:
        return
    try:
        is_usable = bool(str(given).strip()) and bool(resolve_url(given))
    except NoReverseMatch:
        is_usable = False
    if not is_usable:
        yield Error(
            "IDENTITY_LOCAL_SIGN_IN_URL is neither an address nor a URL name.",
            hint="Set it to the site's own sign-in page, or to None if there is no such page.",
            id=f"{LABEL}.E012",
        )


def _proxy_problems(application: conf.Application) -> Iterator[CheckMessage]:
    """Without the proxy's header all people share one address, and one limit of Connect codes."""
    given = [setting for setting in PROXY_SETTINGS if getattr(settings, setting)]
    if given and not _reads_addresses(application):
        yield Warning(
            f"{given[0]} says that the site is behind a proxy, but people's addresses are not read "
            "from the proxy's header: one person's wrong Connect codes lock everybody out.",
            hint=f"Write client_address() in the policy of the application {application.alias!r}.",
            id=f"{LABEL}.W004",
        )


def _reads_addresses(application: conf.Application) -> bool:
    """Whether the site's policy has its own ``client_address``; E010 reports a broken policy."""
    try:
        own = type(policy.load(application.policy))
    except ConfigurationError:
        return True
    return own.client_address is not policy.IdentityPolicy.client_address


def _cache_problems() -> Iterator[CheckMessage]:
    """Gated views mark their responses as private, but a gate in a template cannot."""
    if CACHE_MIDDLEWARE in settings.MIDDLEWARE:
        yield Warning(
            "UpdateCacheMiddleware stores every page. A page that uses a gate in its template or "
            "claims_of() may then be shown to another person.",
            hint="Cache single views, below their gate, or mark such pages with "
            "@cache_control(private=True).",
            id=f"{LABEL}.W005",
        )


def _host_problems(application: conf.Application) -> Iterator[CheckMessage]:
    # Other people may own hosts of a wildcard domain.
    is_open = any(host == "*" or host.startswith(".") for host in settings.ALLOWED_HOSTS)
    if is_open and application.redirect_uri is None:
        yield Warning(
            "ALLOWED_HOSTS has a wildcard, and the callback address is built from the request's "
            "host.",
            hint=f"Set REDIRECT_URI of the application {application.alias!r}.",
            id=f"{LABEL}.W001",
        )
