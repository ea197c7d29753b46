"""The admin's lists and overview with a million rows in each table, on PostgreSQL.

What a filter looks for is mostly a few rows spread over the whole table, or none: a list that is
not served by an index then reads every row. A page above its bound is an error.
"""

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, models
from django.test import Client
from django.urls import reverse

from benchmarks.harness import Figures, fill, fresh_database, seconds_of
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)

ROWS = 1_000_000
ROUNDS = 3
BOUNDS = {"overview": 1.0, "plain": 0.7, "filter": 0.7, "search": 2.0}
SUBJECT = "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
LISTS: dict[type[models.Model], tuple[str, ...]] = {
    LinkedIdentity: (
        "us",
        "user99999",
        "nobody-of-this-name",
        "nobody@example.org",
        SUBJECT[:8],
        SUBJECT,
    ),
    WebhookEvent: ("event-77777", SUBJECT, "no-such-event"),
    ErasureReceipt: (),
}
DIGEST = "md5(n::text) || md5((-n)::text)"


def rare(column: str, *cases: str) -> str:
    """``column``, but for one row in 25,000 of each case: fewer rows than a page lists."""
    whens = " ".join(
        f"WHEN {number} THEN {value}" for number, value in enumerate(cases)
    )
    return f"CASE n % 25000 {whens} ELSE {column} END"


# Column -> SQL, n being the row's number; other columns get their type's plainest.
COLUMNS: dict[type[models.Model], dict[str, str]] = {
    User: {
        "username": "'user' || n",
        "email": "'user' || n || '@example.org'",
        "password": "'!'",
    },
    LinkedIdentity: {
        "created_at": "now() - (1000000 - n) * interval '40 seconds'",
        "user_id": "n",
        "environment": rare("'test'", "'live'"),
        "subject": "md5(n::text)::uuid::text",
        "subject_digest": DIGEST,
        "consent": "CASE WHEN n % 20 = 0 THEN 'revoked' ELSE 'granted' END",
        "revoked_at": "CASE WHEN n % 20 = 0 THEN now() - interval '2 days' END",
        "linked_via": "'oauth'",
        "kyc_level": rare("'level_' || (1 + n % 2)", "''", "'level_9'"),
        "kyc_status": rare("'verified'", "'rejected'", "''", "'expired'"),
        "credential_expires_at": rare(
            "now() + interval '1 hour' + (n % 82800) * interval '1 second'",
            "NULL",
            "now() - interval '1 hour'",
        ),
        "refetch_due_at": "CASE WHEN n % 20 > 0 THEN now() + (n % 64800) * interval '1 second' END",
        "refetch_failures": "CASE WHEN n % 1000 = 0 THEN 3 ELSE 0 END",
    },
    TokenGrant: {
        "identity_id": "n",
        "access_token": "repeat(md5(n::text), 6)",
        "refresh_token": "repeat(md5(n::text), 6)",
        "needs_reauthorization": rare("false", "true"),
    },
    WebhookEvent: {
        "event_id": "'event-' || n",
        "event_digest": DIGEST,
        "event_type": rare("'claim.issued'", "'kyc.rejected'", "''", "'wallet.opened'"),
        "subject": "md5(n::text)::uuid::text",
        "subject_digest": DIGEST,
        "received_at": "now() - (1000000 - n) * interval '3 seconds'",
        "outcome": "CASE WHEN n % 25000 = 0 THEN 'failed' ELSE 'applied' END",
    },
    ErasureReceipt: {
        "requested_at": "now() - (1000000 - n) * interval '40 seconds'",
        "erased_at": rare("now()", "NULL"),
        "counts": "'{}'::jsonb",
    },
}


def run() -> Figures:
    with fresh_database():
        for model, columns in COLUMNS.items():
            fill(model, columns, rows=ROWS)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        browser = Client()
        operator = User.objects.create_superuser("operator")
        browser.force_login(
            operator,
            backend="django.contrib.auth.backends.ModelBackend",
        )
        opened = {
            (kind, address): seconds(browser, address)
            for kind, address in addresses(browser)
        }
    slow = [
        f"{address}: {taken:.2f} s"
        for (kind, address), taken in opened.items()
        if taken > BOUNDS[kind]
    ]
    if slow:
        raise SystemExit("\n".join(["above the bound:", *slow]))
    return {
        f"slowest_{kind}_seconds": max(
            taken for (of, _), taken in opened.items() if of == kind
        )
        for kind in BOUNDS
    }


def addresses(browser: Client) -> Iterator[tuple[str, str]]:
    """Every way to open a page: its kind, and its address."""
    yield "overview", reverse("admin:django_identity_overview_changelist")
    for model, searches in LISTS.items():
        address = reverse(f"admin:django_identity_{model._meta.model_name}_changelist")
        yield "plain", address
        yield from (("search", f"{address}?q={text}") for text in searches)
        listed = browser.get(address).context["cl"]
        for spec in listed.filter_specs:
            for choice in spec.choices(listed):
                if choice["query_string"].strip("?"):
                    yield "filter", address + choice["query_string"]


def seconds(browser: Client, address: str) -> float:
    """Without cache, in a connection of its own."""

    def look() -> None:
        cache.clear()
        connection.close()
        assert browser.get(address).status_code == 200

    return seconds_of({address: look}, rounds=ROUNDS)[address]
