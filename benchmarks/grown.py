"""What the database does for one piece of work, in a small site and in a large one; on PostgreSQL.

``…_ms``: how long its statements took, which a busy machine spoils. ``…_pages``: how many pages of
8 KB they read, from memory or disk, which it does not.

``ROWS`` in the environment: the people of the large one, by default a million; ten million need 25
GB, an hour, and a role that may switch foreign keys off. Each has an identity, a grant, a claim and
an account; a fifth have an event. 2,000 are due, 2,000 fail, and 2,000 have lost their grant. A
figure is the median over so many people, each of them touched for the first time. What grows is the
overview alone, which counts everybody.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client, override_settings

from benchmarks.harness import Figures, fill, fresh_database
from benchmarks.lists import COLUMNS
from django_identity import conf
from django_identity.admin import overview
from django_identity.gates import claims_of
from django_identity.instruments.signs import diagnose, figures
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due, grants
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant, WebhookEvent
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer
from tests.deliveries import SECRET, event_body, post
from tests.fake_service import FakeService, serving
from tests.sign_in import sign_in

SMALL = 10_000
LARGE = int(os.environ.get("ROWS", 1_000_000))
DUE = 2_000
TOUCHED = 30
EVENTS_OF = 5
WARM_UP = 10
TABLES = (User, LinkedIdentity, TokenGrant, StoredClaim, WebhookEvent)
# As ``models.digest`` makes it of environment and subject, each behind its length.
SUBJECT = "md5(n::text)::uuid::text"
DIGEST = (
    "encode(sha256('\\x00000004'::bytea"
    f" || 'test'::bytea || '\\x00000024'::bytea || ({SUBJECT})::bytea), 'hex')"
)


def run() -> Figures:
    small, large = figures_of(SMALL), figures_of(LARGE)
    found: Figures = {"rows": LARGE}
    for name in small:
        found[f"{name}_small"] = small[name]
        found[f"{name}_large"] = large[name]
    return found


def figures_of(rows: int) -> Figures:
    with fresh_database(), serving() as service:
        with no_indexes():
            for model, columns in columns_of(rows).items():
                fill(
                    model,
                    columns,
                    rows=rows // (EVENTS_OF if model is WebhookEvent else 1),
                )
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        ours = service.settings(WEBHOOK_SECRETS=[SECRET])
        with override_settings(DJANGO_IDENTITY=ours):
            return measured(service, rows)


def columns_of(rows: int) -> dict[Any, dict[str, str]]:
    later = "now() + interval '6 hours' + random() * interval '12 hours'"
    lately = "now() - random() * interval '10 minutes'"
    columns = {model: dict(COLUMNS.get(model, {})) for model in TABLES}
    columns[LinkedIdentity] |= {
        "created_at": f"now() - ({rows} - n) * interval '4 seconds'",
        "environment": "'test'",
        "consent": "'granted'",
        "revoked_at": "NULL",
        "subject_digest": DIGEST,
        "signed_in_at": "now() - interval '1 day'",
        "scopes": """'["profile:read", "kyc:read", "claims:read"]'::jsonb""",
        "refetch_failures": f"CASE WHEN n % {rows // DUE} = 1 THEN 3 ELSE 0 END",
        "refetch_due_at": f"CASE WHEN n % {rows // DUE} = 0 THEN {lately} ELSE {later} END",
    }
    columns[TokenGrant] |= {
        "access_token": "repeat(md5(n::text), 8)",
        "refresh_token": "repeat(md5(n::text), 8)",
        "needs_reauthorization": f"n % {rows // DUE} = 2",
        "access_expires_at": "now() - interval '2 days'",
    }
    columns[StoredClaim] = {
        "identity_id": "n",
        "claim_type": "'age_over_18'",
        "provider": "'KYC'",
        "value": "'true'::jsonb",
        "valid_until": "now() + interval '20 hours'",
    }
    columns[WebhookEvent] |= {
        "subject_digest": DIGEST,
        "received_at": f"now() - ({rows} - n) * interval '1 second'",
    }
    return columns


@contextmanager
def no_indexes() -> Iterator[None]:
    """Without indexes, unique constraints and foreign keys rows come in ten times as fast."""
    tables = [model._meta.db_table for model in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype IN ('u', 'f') AND conrelid = ANY(%s::regclass[])",
            [tables],
        )
        constraints = cursor.fetchall()
        for table, name, _definition in constraints:
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes"
            " WHERE tablename = ANY(%s) AND indexname NOT LIKE '%%_pkey'",
            [tables],
        )
        indexes = cursor.fetchall()
        for name, _definition in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        yield
        cursor.execute("SET maintenance_work_mem = '512MB'")
        for _name, definition in indexes:
            cursor.execute(definition)
        for table, name, definition in constraints:
            cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')


# What the database did


class Cost(NamedTuple):
    milliseconds: float
    pages: float


@dataclass
class Meter:
    """Sums up what statements cost while it runs."""

    is_running: bool = True
    seconds: float = 0.0

    def __call__(self, execute: Any, *statement: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*statement)
        finally:
            if self.is_running:
                self.seconds += time.perf_counter() - began


_meter = Meter()


def cost_of(work: Callable[[], object]) -> Cost:
    """Of all statements of ``work``, without those that ask for the cost."""
    nothing = pages_read() - pages_read()
    _meter.seconds = 0.0
    before = pages_read()
    with connection.execute_wrapper(_meter):
        work()
    return Cost(1000 * _meter.seconds, pages_read() - before + nothing)


def pages_read() -> int:
    """By everybody in this database so far, who is this process alone."""
    asked("SELECT pg_stat_force_next_flush()")
    return int(
        asked(
            "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()",
        ),
    )


@contextmanager
def uncounted() -> Iterator[None]:
    _meter.is_running = False
    yield
    _meter.is_running = True


# What is measured


def measured(service: FakeService, rows: int) -> Figures:
    site = conf.application()
    people = iter(range(7, rows, rows // (TOUCHED * 6)))
    for _ in range(WARM_UP):
        pages_read()  # The first ones read the database's own catalogue, too.
    costs = {
        "tick": cost_of(lambda: due.rows()[: site.refetches_per_minute].count()),
        "take_twenty": cost_of(lambda: due.take()),
        "tend": cost_of(upkeep.tend),
    }
    for name, work in {
        "gate": gate,
        "sign_in": returning,
        "event": event,
        "refetch": refetched,
        "erasure": erased,
    }.items():
        costs[name] = median_of(work, service, people)
    cache.clear()
    costs["overview"] = cost_of(overview.look)
    costs["doctor"] = cost_of(lambda: list(diagnose()))
    costs["doctor_figures"] = cost_of(figures)
    found = {"bytes_a_person": size() / rows}
    for name, cost in costs.items():
        found[f"{name}_ms"] = cost.milliseconds
        found[f"{name}_pages"] = cost.pages
    return found


def median_of(
    work: Callable[[FakeService, LinkedIdentity], object],
    service: FakeService,
    people: Iterator[int],
) -> Cost:
    """Of the work for one person, at the median."""
    costs = []
    for _ in range(TOUCHED):
        subject = asked("SELECT md5(%s::text)::uuid::text", [str(next(people))])
        identity = LinkedIdentity(environment="test", subject=subject)
        service.subject = subject
        costs.append(cost_of(partial(work, service, identity)))
    middle = statistics.median
    return Cost(
        middle(each.milliseconds for each in costs),
        middle(each.pages for each in costs),
    )


def gate(_service: FakeService, identity: LinkedIdentity) -> None:
    claims_of(stored(identity).user)


def returning(_service: FakeService, _identity: LinkedIdentity) -> None:
    assert sign_in(Client()).status_code == 302


def event(_service: FakeService, identity: LinkedIdentity) -> None:
    assert (
        post(event_body("claim.revoked", subject=identity.subject)).status_code == 200
    )


def refetched(_service: FakeService, identity: LinkedIdentity) -> None:
    row = stored(identity)
    with uncounted():
        answer = TokenAnswer(Secret("at-0"), Secret(f"rt-{row.pk}"), 0.0, None, None)
        grants.store(row, answer)
    assert list(upkeep.refetch_these([row.pk])) == [upkeep.Refetched.STORED]


def erased(_service: FakeService, identity: LinkedIdentity) -> None:
    receipt = erasure.erase_subject(identity.subject)
    assert receipt.erased_at is not None


def stored(identity: LinkedIdentity) -> LinkedIdentity:
    return LinkedIdentity.objects.get(subject_digest=identity.own_digest)


def size() -> int:
    sizes = (f"pg_total_relation_size('{model._meta.db_table}')" for model in TABLES)
    return int(asked(f"SELECT {' + '.join(sizes)}"))


def asked(statement: str, values: list[str] | None = None) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
