"""What a person costs: bytes, statements, calls, processor time; purge and erasure; on PostgreSQL.

- ``…_bytes``: of one row with its part of all indexes, packed. A person is an identity, a grant and
  four claims. ``worn``: the same after twenty re-fetches of everybody, with a vacuum after each, as
  autovacuum leaves a table.
- ``refetch_…``: of one re-fetch with a refresh, of twenty in a message: statements, processor time
  of the worker, write-ahead log, row versions, and how many of these were written in place (HOT).
- ``megabytes_…``: the memory of this process after so many re-fetches.
- ``calls_a_day``: of upkeep to the service.
- ``purged_events_per_second``: out of a million that are too old.
"""

import resource
import time
import uuid
from collections import Counter
from functools import partial
from pathlib import Path

from django.db import connection
from django.db.models import Model
from django.test import override_settings
from django.utils import timezone

from benchmarks import erasure, refetch
from benchmarks.harness import Figures, fill, fresh_database, statements_of
from benchmarks.lists import COLUMNS
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant, WebhookEvent
from tests.deliveries import SECRET, event_body, post
from tests.factories import make_grant, make_identity, make_user
from tests.integration.counting_service import setting

PEOPLE = 1_000
ROUNDS = 20
LOOKED_AT = (1, 10, 20)
OLD_EVENTS = 1_000_000
MESSAGE = due.ROWS_AT_ONCE


def run() -> Figures:
    figures = a_person()
    figures |= refetch.a_day()
    figures["purged_events_per_second"] = purge()
    figures |= erasure.run()
    return figures


def a_person() -> Figures:
    with refetch.served(delay=0.0) as origin, fresh_database():
        given = setting(origin, WEBHOOK_SECRETS=[SECRET], REFETCHES_PER_MINUTE=PEOPLE)
        with override_settings(DJANGO_IDENTITY=given):
            subjects = [str(uuid.UUID(int=number * 7919)) for number in range(PEOPLE)]
            make_people(subjects)
            refetch_everybody()
            figures = bytes_of("", PEOPLE)
            events = deliver(subjects)
            figures["event_bytes"] = size_of(WebhookEvent) / events
            figures |= measured_refetch()
            for number in range(1, ROUNDS + 1):
                refetch_everybody()
                vacuum()
                if number in LOOKED_AT:
                    figures[f"megabytes_after_{PEOPLE * number}"] = megabytes()
            return figures | bytes_of("worn_", PEOPLE)


def megabytes() -> float:
    """What this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1024**2


def make_people(subjects: list[str]) -> None:
    now = timezone.now()
    for subject in subjects:
        identity = make_identity(
            make_user(subject),
            subject=subject,
            scopes=refetch.SCOPES,
        )
        tokens = {"access_token": f"at-0-{subject}", "refresh_token": f"rt-0-{subject}"}
        make_grant(identity, access_expires_at=now, **tokens)


def refetch_everybody() -> None:
    """Claims and a refresh, as on most days; the level is read once a day."""
    now = timezone.now()
    LinkedIdentity.objects.update(refetch_due_at=now)
    TokenGrant.objects.update(access_expires_at=now)
    ended = Counter(upkeep.refetch_due(most=PEOPLE))
    assert ended == {upkeep.Refetched.STORED: PEOPLE}, ended


def deliver(subjects: list[str]) -> int:
    """One event about each of them."""
    for number, subject in enumerate(subjects):
        body = event_body(
            "claim.issued",
            subject=subject,
            event_id=f"evt-{uuid.UUID(int=number)}",
        )
        assert post(body).status_code == 200
    return len(subjects)


def measured_refetch() -> Figures:
    now = timezone.now()
    LinkedIdentity.objects.update(refetch_due_at=now)
    TokenGrant.objects.update(access_expires_at=now)
    vacuum()
    statements = statements_of(partial(upkeep.refetch_for_a_minute, MESSAGE))
    written = versions()
    log = log_position()
    began = time.process_time()
    left = PEOPLE - MESSAGE
    ended = Counter(upkeep.refetch_due(most=left))
    seconds = time.process_time() - began
    assert ended == {upkeep.Refetched.STORED: left}, ended
    log_bytes = log_position() - log
    updated, in_place = (
        after - before for before, after in zip(written, versions(), strict=True)
    )
    return {
        "refetch_statements": statements / MESSAGE,
        "refetch_cpu_milliseconds": 1000 * seconds / left,
        "refetch_log_bytes": log_bytes / left,
        "refetch_row_versions": updated / left,
        "refetch_row_versions_in_place": in_place / left,
    }


def purge() -> float:
    """Events a second."""
    columns = {**COLUMNS[WebhookEvent], "received_at": "now() - interval '400 days'"}
    with fresh_database():
        fill(WebhookEvent, columns, rows=OLD_EVENTS)
        vacuum()
        began = time.perf_counter()
        upkeep.purge()
        assert not WebhookEvent.objects.exists()
        return OLD_EVENTS / (time.perf_counter() - began)


# What PostgreSQL knows


def bytes_of(prefix: str, people: int) -> Figures:
    if not prefix:
        vacuum(full=True)
    names = {"identity": LinkedIdentity, "grant": TokenGrant, "claims": StoredClaim}
    found = {name: size_of(model) / people for name, model in names.items()}
    figures = {f"{prefix}{name}_bytes": size for name, size in found.items()}
    return {**figures, f"{prefix}person_bytes": sum(found.values())}


def size_of(model: type[Model]) -> int:
    """The table with all its indexes."""
    return int(asked(f"SELECT pg_total_relation_size('{model._meta.db_table}')"))


def versions() -> tuple[int, int]:
    """Row versions that were written so far, and those of them in place."""
    # The statistics of this connection's own transactions arrive a moment later.
    asked("SELECT pg_stat_force_next_flush()")
    sums = "sum(n_tup_upd)::bigint, sum(n_tup_hot_upd)::bigint"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sums} FROM pg_stat_user_tables")
        updated, in_place = cursor.fetchone()
    return int(updated), int(in_place)


def log_position() -> int:
    return int(asked("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


def vacuum(*, full: bool = False) -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM FULL" if full else "VACUUM ANALYZE")


def asked(statement: str) -> int | str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        [value] = cursor.fetchone()
    return value or 0
