"""How long the admin takes with a million rows in each of its lists.

PostgreSQL only (``DATABASE_URL``). The rows are made by the database itself: a million users,
identities with credentials of a usual length, grants, events and erasure receipts. What a filter
looks for is mostly a few rows spread over the whole table, or none: a list that is not served by an
index then reads every row.

``overview_cold_seconds`` is an opening after the cache is emptied, in a connection of its own, the
page's rendering included; ``overview_first_seconds`` the first of all, ``overview_warm_seconds``
one within the same minute. Every list is opened plainly, with each choice of each filter, in each
order, with searches, and with each two filters; ``slowest_*`` are the slowest of each list. A page
above its bound ends the benchmark with an error that names it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from django.contrib.admin.templatetags.admin_list import result_headers
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, models
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import reverse

from django_identity.models import ErasureReceipt, LinkedIdentity, TokenGrant, WebhookEvent
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result

ROWS = 1_000_000
ROUNDS = 5
LONGEST_COLD_OVERVIEW = 0.5
LONGEST_LIST = 0.7
OVERVIEW = "admin:django_identity_overview_changelist"
SUBJECT = "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
# The searches of each list: beginnings that many, a few and no rows have, and whole values.
LISTS: dict[type[models.Model], tuple[str, ...]] = {
    LinkedIdentity: ("us", "user99999", "User99999", "nobody-of-this-name", "user77777@example.org",
                     "nobody@example.org", SUBJECT[:8], SUBJECT, "ffffffff-nobody"),
    WebhookEvent: ("event-77777", SUBJECT, "no-such-event"),
    ErasureReceipt: (),
}  # fmt: skip


def rare(column: str, *cases: tuple[int, str]) -> str:
    """``column``, but for one row in 25,000 of each case: fewer rows than a page lists."""
    whens = " ".join(f"WHEN {number} THEN {value}" for number, value in cases)
    return f"CASE n % 25000 {whens} ELSE {column} END"


# What a column is filled with, n being the row's number; other columns get their type's plainest.
USER = {"username": "'user' || n", "email": "'user' || n || '@example.org'", "password": "'!'"}
IDENTITY = {
    "created_at": "now() - interval '500 days' - (1000000 - n) * interval '1 second'",
    "user_id": "n",
    "application": "'default'",
    "environment": rare("'test'", (6, "'live'")),
    "subject": "md5(n::text)::uuid::text",
    "subject_digest": "md5(n::text) || md5((-n)::text)",
    "consent": "CASE WHEN n % 20 = 0 THEN 'revoked' ELSE 'granted' END",
    "linked_via": "'oauth'",
    "scopes": '\'["profile:read", "claims:read"]\'::jsonb',
    "kyc_level": rare("'level_' || (1 + n % 2)", (1, "''"), (2, "'level_9'")),
    "kyc_status": rare("'verified'", (3, "'rejected'"), (4, "''"), (5, "'expired'")),
    "credential": "repeat(md5(n::text), 50)",
    "credential_expires_at": rare(
        "now() + interval '1 hour' + (n % 82800) * interval '1 second'",
        (7, "NULL"), (8, "now() - interval '1 hour'"),
    ),
    # Nothing is due without consent or, as of those whose grant is deleted below, without a grant.
    "refetch_due_at": "CASE WHEN n % 20 > 0 AND n % 25000 <> 12 "
    "THEN now() + (n % 64800) * interval '1 second' END",
    "refetch_failures": "CASE WHEN n % 1000 = 0 THEN 3 ELSE 0 END",
    "last_error": "CASE WHEN n % 1000 = 0 THEN 'service_timeout' ELSE '' END",
}  # fmt: skip
GRANT = {
    "identity_id": "n",
    "access_token": "repeat(md5(n::text), 6)",
    "refresh_token": "repeat(md5(n::text), 6)",
    "refresh_expires_at": rare(
        "now() + interval '6 days' + (n % 2592000) * interval '1 second'",
        (10, "now() + interval '1 day'"),
    ),
    "needs_reauthorization": rare("false", (11, "true")),
}
EVENT = {
    "application": "'default'",
    "event_id": "'event-' || n",
    "event_digest": "md5(n::text) || md5((-n)::text)",
    "event_type": rare("'claim.issued'", (1, "'kyc.rejected'"), (2, "''"), (3, "'wallet.opened'")),
    "subject_digest": "md5(n::text) || md5((-n)::text)",
    "payload": '\'{"event_type": "claim.issued"}\'::jsonb',
    "received_at": "now() - interval '40 days' - (1000000 - n) * interval '1 second'",
    "outcome": "CASE WHEN n % 25000 = 0 THEN 'failed' ELSE 'applied' END",
}
RECEIPT = {
    "application": "'default'",
    "environment": rare("'test'", (1, "'live'")),
    "subject_digest": "md5(n::text) || md5((-n)::text)",
    "requested_at": "now() - interval '500 days' - (1000000 - n) * interval '1 second'",
    "erased_at": rare("now()", (2, "NULL")),
    "counts": "'{}'::jsonb",
}
FILLED: tuple[tuple[type[models.Model], dict[str, str]], ...] = (
    (User, USER), (LinkedIdentity, IDENTITY), (TokenGrant, GRANT), (WebhookEvent, EVENT),
    (ErasureReceipt, RECEIPT),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """One page, and the median of its seconds."""

    name: str
    seconds: float
    bound: float


def run() -> Result:
    if connection.vendor != "postgresql":
        raise SystemExit("set DATABASE_URL to a PostgreSQL")
    setup_test_environment()
    with fresh_database():
        make_rows()
        return _within_bounds(_operator())


def make_rows() -> None:
    for model, columns in FILLED:
        fill(model, columns)
    with connection.cursor() as cursor:
        # Forty identities without a grant.
        table = TokenGrant._meta.db_table
        cursor.execute(f"DELETE FROM {table} WHERE identity_id % 25000 = 12")
        cursor.execute("VACUUM ANALYZE")


def _operator() -> Client:
    browser = Client()
    browser.force_login(
        User.objects.create_superuser("operator"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return browser


def _within_bounds(browser: Client) -> Result:
    overview = reverse(OVERVIEW)
    cold = _seconds(browser, overview, cold=True)
    opened = [Opened("overview", median(cold), LONGEST_COLD_OVERVIEW)]
    figures = {
        "overview_first_seconds": cold[0],
        "overview_cold_seconds": median(cold),
        "overview_warm_seconds": median(_seconds(browser, overview, cold=False)),
    }
    for model in LISTS:
        seen = list(_lists(browser, model))
        opened += seen
        for kind in ("plain", "filter", "order", "search", "pair"):
            times = [one.seconds for one in seen if one.name.split()[1] == kind]
            if times:
                figures[f"slowest_{model._meta.model_name}_{kind}_seconds"] = max(times)
    result = Result("overview", {}, figures)
    if slow := [f"{one.name}: {one.seconds:.2f} s" for one in opened if one.seconds > one.bound]:
        raise SystemExit("\n".join([result.as_table(), "above the bound:", *slow]))
    return result


def _lists(browser: Client, model: type[models.Model]) -> Iterator[Opened]:
    address = reverse(f"admin:django_identity_{model._meta.model_name}_changelist")
    for kind, query in _queries(browser, address, LISTS[model]):
        # Pairs are many: only what is slow at first is opened again.
        taken = _seconds(
            browser, address + query, cold=True, rounds=1 if kind == "pair" else ROUNDS
        )
        if len(taken) == 1 and taken[0] > LONGEST_LIST / 2:
            taken = _seconds(browser, address + query, cold=True)
        seconds = median(taken)
        yield Opened(f"{model._meta.model_name} {kind} {query}", seconds, LONGEST_LIST)


def _queries(browser: Client, address: str, searches: tuple[str, ...]) -> list[tuple[str, str]]:
    """Every way to open the list: a kind, and the query string."""
    listed = browser.get(address).context["cl"]
    filters = [
        ("filter", choice["query_string"])
        for spec in listed.filter_specs
        for choice in spec.choices(listed)
        if choice["query_string"].strip("?")
    ]
    columns = [
        header["url_primary"].partition("o=")[2].lstrip("-")
        for header in result_headers(listed)
        if header["sortable"]
    ]
    orders = [("order", f"?o={sign}{column}") for column in columns for sign in ("", "-")]
    pairs = [
        ("pair", f"{one}&{other[1:]}")
        for (_, one), (_, other) in combinations(filters, 2)
        if one.partition("=")[0] != other.partition("=")[0]
    ]
    named = [("search", f"?q={text}") for text in searches]
    return [("plain", ""), *filters, *orders, *named, *pairs]


def _seconds(browser: Client, address: str, *, cold: bool, rounds: int = ROUNDS) -> list[float]:
    taken = []
    for _ in range(rounds):
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
