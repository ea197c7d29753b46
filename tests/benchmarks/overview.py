"""How long the admin takes with a million linked identities: the overview and the list.

PostgreSQL only (``DATABASE_URL``). The rows are made by the database itself: a million users,
identities with credentials of a usual length, grants, and a million events. ``overview_cold`` is
an opening after the cache is emptied, in a connection of its own, the page's rendering included;
``overview_first`` the first of all, ``overview_warm`` one within the same minute. A cold one that
takes a second fails. The lists are without a filter, with
the rarest one, and with a search.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, models
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import reverse

from django_identity.models import LinkedIdentity, TokenGrant, WebhookEvent
from tests.benchmarks.runner import Result

ROWS = 1_000_000
ROUNDS = 5
LONGEST_SECONDS = 1.0
IDENTITIES = "admin:django_identity_linkedidentity_changelist"
OVERVIEW = "admin:django_identity_overview_changelist"
# What a column is filled with, n being the row's number; other columns get their type's plainest.
USER = {"username": "'user' || n", "email": "'user' || n || '@example.org'", "password": "'!'"}
IDENTITY = {
    "user_id": "n",
    "application": "'default'",
    "environment": "'test'",
    "subject": "md5(n::text)::uuid::text",
    "subject_digest": "md5(n::text) || md5((-n)::text)",
    "consent": "CASE WHEN n % 20 = 0 THEN 'revoked' ELSE 'granted' END",
    "linked_via": "'oauth'",
    "scopes": '\'["profile:read", "claims:read"]\'::jsonb',
    "kyc_level": "'level_' || (1 + n % 2)",
    "kyc_status": "'verified'",
    "credential": "repeat(md5(n::text), 50)",
    "credential_expires_at": "now() + (n % 86400) * interval '1 second'",
    "refetch_due_at": "now() + (n % 64800) * interval '1 second'",
    "refetch_failures": "CASE WHEN n % 1000 = 0 THEN 3 ELSE 0 END",
    "last_error": "CASE WHEN n % 1000 = 0 THEN 'service_timeout' ELSE '' END",
}
GRANT = {
    "identity_id": "n",
    "access_token": "repeat(md5(n::text), 6)",
    "refresh_token": "repeat(md5(n::text), 6)",
    "refresh_expires_at": "now() + (n % 2592000) * interval '1 second'",
}
EVENT = {
    "application": "'default'",
    "event_id": "'event-' || n",
    "event_digest": "md5(n::text) || md5((-n)::text)",
    "event_type": "'claim.issued'",
    "subject_digest": "md5(n::text) || md5((-n)::text)",
    "payload": '\'{"event_type": "claim.issued"}\'::jsonb',
    "received_at": "now() - (1000000 - n) * interval '1 second'",
    "outcome": "CASE WHEN n % 5000 = 0 THEN 'failed' ELSE 'applied' END",
}


def run() -> Result:
    if connection.vendor != "postgresql":
        raise SystemExit("set DATABASE_URL to a PostgreSQL")
    setup_test_environment()
    name = connection.creation.create_test_db(verbosity=0)
    try:
        for model, columns in (
            (User, USER), (LinkedIdentity, IDENTITY), (TokenGrant, GRANT), (WebhookEvent, EVENT),
        ):  # fmt: skip
            fill(model, columns)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        return Result("overview", {}, _measured())
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _measured() -> dict[str, float]:
    browser = Client()
    browser.force_login(
        User.objects.create_superuser("operator"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    pages = {
        "list": reverse(IDENTITIES),
        "list_rarest_filter": reverse(IDENTITIES) + "?level=other",
        "list_failing": reverse(IDENTITIES) + "?failing=yes",
        "list_search": reverse(IDENTITIES) + "?q=user99999",
        "list_search_nobody": reverse(IDENTITIES) + "?q=nobody-of-this-name",
    }
    cold = _seconds(browser, reverse(OVERVIEW), cold=True)
    figures = {
        "overview_first_seconds": cold[0],
        "overview_cold_seconds": median(cold),
        "overview_warm_seconds": median(_seconds(browser, reverse(OVERVIEW), cold=False)),
    }
    assert figures["overview_cold_seconds"] < LONGEST_SECONDS
    return figures | {
        f"{name}_seconds": median(_seconds(browser, address, cold=True))
        for name, address in pages.items()
    }


def _seconds(browser: Client, address: str, *, cold: bool) -> list[float]:
    taken = []
    for _ in range(ROUNDS):
        if cold:
            cache.clear()
            connection.close()
        started = time.perf_counter()
        response = browser.get(address)
        taken.append(time.perf_counter() - started)
        assert response.status_code == 200
    return taken


def fill(model: type[models.Model], given: dict[str, str], *, rows: int = ROWS) -> None:
    """So many rows of ``model``, made by the database."""
    values = {
        field.column: given.get(field.column) or _plainest(field)
        for field in model._meta.concrete_fields
        if not field.primary_key
    }
    columns = ", ".join(f'"{column}"' for column in values)
    made = ", ".join(values.values())
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{model._meta.db_table}" ({columns}) '
            f"SELECT {made} FROM generate_series(1, {rows}) n"
        )


def _plainest(field: models.Field[Any, Any]) -> str:
    """What a column holds that no figure looks at."""
    if field.null:
        return "NULL"
    if isinstance(field, models.DateTimeField):
        return "now()"
    if isinstance(field, models.BooleanField):
        return "true" if field.name == "is_active" else "false"
    if isinstance(field, models.JSONField):
        return "'[]'::jsonb"
    return "1" if isinstance(field, models.IntegerField) else "''"
