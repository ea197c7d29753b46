"""Erasing people: one, a hundred beside a million sessions, and one with 100,000 events.

PostgreSQL only (``DATABASE_URL``). Figures: milliseconds for one person on a site whose sessions
are not in a table; seconds for a hundred people with a million session rows in all; the seconds of
the longest transaction of one person with 100,000 events, and of the whole erasure.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import override_settings
from django.test.utils import setup_test_environment
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.events import receipts
from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result
from tests.hostile import hostile_service
from tests.records import make_event, make_grant, make_identity, make_user

PEOPLE = 100
SESSIONS = 1_000_000
EVENTS = 100_000
ROUNDS = 21
COOKIES = "django.contrib.sessions.backends.signed_cookies"
COPIED_SESSIONS = """
INSERT INTO django_session (session_key, session_data, expire_date)
SELECT md5(n::text), %s, now() + interval '13 days' FROM generate_series(1, %s) AS n
"""
COPIED_EVENTS = """
INSERT INTO {table} ({columns}) SELECT {values} FROM {table}, generate_series(1, %s) AS n
"""


def run() -> Result:
    if connection.vendor != "postgresql":
        raise SystemExit("set DATABASE_URL to a PostgreSQL")
    setup_test_environment()
    with (
        hostile_service() as service,
        fresh_database(),
        override_settings(DJANGO_IDENTITY={"default": service.settings()}),
    ):
        return Result("erasure", {}, {**_one(), **_many_events(), **_hundred()})


def _person(number: int) -> LinkedIdentity:
    identity = make_identity(
        make_user(f"user-{number}"), subject=f"subject-{number}", account_made=True
    )
    make_grant(identity)
    return identity


def _requested(identity: LinkedIdentity) -> ErasureReceipt:
    return receipts.open_receipt(
        conf.application(), identity.subject, identity=identity, requested_at=timezone.now()
    )


def _one() -> dict[str, float]:
    taken, cpu = [], []
    with override_settings(SESSION_ENGINE=COOKIES):
        for number in range(ROUNDS):
            receipt = _requested(_person(number))
            started, cpu_started = time.perf_counter(), time.process_time()
            assert erasure.attempt(receipt.pk)
            taken.append(time.perf_counter() - started)
            cpu.append(time.process_time() - cpu_started)
    return {
        "one_person_milliseconds": 1000 * median(taken),
        "one_person_cpu_milliseconds": 1000 * median(cpu),
    }


def _hundred() -> dict[str, float]:
    somebody = SessionStore().encode({SESSION_KEY: "0", "_auth_user_hash": "x" * 64})
    with connection.cursor() as cursor:
        cursor.execute(COPIED_SESSIONS, [somebody, SESSIONS])
        cursor.execute("VACUUM ANALYZE django_session")
    for number in range(PEOPLE):
        _requested(_person(1000 + number))
    started, cpu = time.perf_counter(), time.process_time()
    assert erasure.retry_pending() == PEOPLE
    return {
        "hundred_people_seconds": time.perf_counter() - started,
        "hundred_people_cpu_seconds": time.process_time() - cpu,
    }


def _many_events() -> dict[str, float]:
    identity = _person(9999)
    make_event(identity, "claim.issued")
    names = [field.column for field in WebhookEvent._meta.concrete_fields if field.name != "id"]
    digest = "md5(n::text) || md5('of ' || n)"
    values = [digest if name == "event_digest" else name for name in names]
    copied = COPIED_EVENTS.format(
        table=WebhookEvent._meta.db_table, columns=", ".join(names), values=", ".join(values)
    )
    with connection.cursor() as cursor:
        cursor.execute(copied, [EVENTS])
        cursor.execute("VACUUM ANALYZE")
    receipt, longest = _requested(identity), _Longest()
    started = time.perf_counter()
    with connection.execute_wrapper(longest):
        assert erasure.attempt(receipt.pk)
    whole = time.perf_counter() - started
    return {"longest_transaction_seconds": longest.seconds, "many_events_seconds": whole}


class _Longest:
    """The longest time from the first statement of a transaction to the end of its last."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began_at: float | None = None

    def __call__(self, execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if not connection.in_atomic_block:
            self._began_at = None
        elif self._began_at is None:
            self._began_at = time.perf_counter()
        result = execute(sql, parameters, many, context)
        if self._began_at is not None:
            self.seconds = max(self.seconds, time.perf_counter() - self._began_at)
        return result
