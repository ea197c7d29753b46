"""Databases, caches and clock."""

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections, router

from django_identity import database

CACHE_MIDDLEWARE = "django.middleware.cache.UpdateCacheMiddleware"


def problems() -> Iterator[CheckMessage]:
    yield from _router_problems()
    yield from _sqlite_problems()
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


def _sqlite_problems() -> Iterator[CheckMessage]:
    """A transaction that reads and then writes fails at once beside another writer."""
    if database.alias() not in connections or database.connection().vendor != "sqlite":
        return
    if database.connection().settings_dict["OPTIONS"].get("transaction_mode") != "IMMEDIATE":
        yield Warning(
            "SQLite begins transactions without a lock: of two requests that write at the same "
            "time one may fail.",
            hint='Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20} in DATABASES.',
            id="django_identity.W003",
        )
