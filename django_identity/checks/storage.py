"""Databases, caches, broker and clock."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import DEFAULT_CACHE_ALIAS
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections, router

from django_identity import background, database

CACHE_MIDDLEWARE = "django.middleware.cache.UpdateCacheMiddleware"
#: Caches that processes do not share.
OWN_CACHES = ("locmem.LocMemCache", "dummy.DummyCache")
ISOLATED = {"postgresql", "mysql"}


def problems() -> Iterator[CheckMessage]:
    yield from _router_problems()
    yield from _isolation_problems()
    # With Celery's defaults a broker that does not answer blocks publishing for minutes.
    if background.has_broker() and not background.has_broker_timeout():
        yield Warning(
            "Connections to the broker have no time-out: a broker that hangs blocks publishing.",
            hint='Set CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, '
            '"socket_connect_timeout": 5} for Redis, {"read_timeout": 5, "write_timeout": 5, '
            '"connect_timeout": 5} for RabbitMQ.',
            id="django_identity.W002",
        )
    # Gated views mark their responses as private, but a gate in a template cannot.
    if CACHE_MIDDLEWARE in settings.MIDDLEWARE:
        yield Warning(
            "UpdateCacheMiddleware stores every page. A page that uses a gate in its template or "
            "claims_of() may then be shown to another person.",
            hint="Cache single views, below their gate, or mark such pages with "
            "@cache_control(private=True).",
            id="django_identity.W005",
        )
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: the times of claims and revocations could not be compared.",
            hint="Set USE_TZ = True. Only the TIME_ZONE of pages is a matter of taste.",
            id="django_identity.E039",
        )


def check_shared_cache(**_kwargs: Any) -> list[CheckMessage]:
    """Check that the processes of a deployed site share their cache (W027)."""
    backend = settings.CACHES.get(DEFAULT_CACHE_ALIAS, {}).get("BACKEND", "")
    if settings.DEBUG or not backend.endswith(OWN_CACHES):
        return []
    found = Warning(
        f"The default cache is {backend.rpartition('.')[2]}, which processes do not share: "
        "each of them has a RATE_LIMIT and a limit of wrong Connect codes of its own.",
        hint="Use Redis, Memcached or the database as the default cache.",
        id="django_identity.W027",
    )
    return [found]


def _router_problems() -> Iterator[CheckMessage]:
    """All tables of this package, and the users, must be in one database."""
    for model in (get_user_model(), *apps.get_app_config("django_identity").get_models()):
        written_to = router.db_for_write(model)
        if written_to != database.alias():
            yield Error(
                f"The router writes {model._meta.label} to the database {written_to!r}, and linked "
                f"identities to {database.alias()!r}.",
                hint="Let DATABASE_ROUTERS send all models of django_identity, and AUTH_USER_MODEL "
                "to which they refer, to one database.",
                id="django_identity.E035",
            )


def _isolation_problems() -> Iterator[CheckMessage]:
    """In a stricter isolation level a revocation may miss an identity that was just linked."""
    if database.alias() not in connections:
        return
    connection = database.connection()
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
            id="django_identity.W003",
        )
