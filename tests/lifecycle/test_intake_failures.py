"""What fails in the middle of taking an event in: nothing of it is left, or all of it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from django_identity.models import (
    Consent,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from tests.databases import on_postgresql
from tests.deliveries import event_body, post
from tests.lifecycle.test_events import linked, outcomes
from tests.lifecycle.waiting import PATIENCE, alone

pytestmark = pytest.mark.django_db(transaction=True)

Execute = Callable[..., Any]


# What a revocation writes first and last; what comes between is undone, too.
CHANGED = {"INSERT": "webhookevent", "UPDATE": "linkedidentity"}


def fail_at(
    verb: str, *, times: int, error: type[BaseException] = OperationalError
) -> tuple[Execute, list[str]]:
    """What makes the first or the last statement fail so many times, and which ones did."""
    failed: list[str] = []

    def execute(execute: Execute, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if sql.startswith(verb) and CHANGED[verb] in sql and len(failed) < times:
            failed.append(sql)
            raise error("deadlock detected")
        return execute(sql, parameters, many, context)

    return execute, failed


@pytest.mark.parametrize("verb", ["INSERT", "UPDATE"])
def test_a_transaction_that_fails_half_way_is_begun_anew(verb: str) -> None:
    """Nothing of the first try is left, and its locks are free."""
    linked()
    wrapper, failed = fail_at(verb, times=2)
    with connection.execute_wrapper(wrapper):
        assert post(event_body("consent.revoked")).status_code == 200
    assert len(failed) == 2
    assert outcomes() == ["applied"]
    assert not TokenGrant.objects.exists()
    assert_nothing_is_open()


def test_a_transaction_that_cannot_end_leaves_nothing() -> None:
    """503: the event is not there, nor half of what it says, and nobody waits for it."""
    linked()
    wrapper, failed = fail_at("UPDATE", times=3)
    body = event_body("consent.revoked")
    with connection.execute_wrapper(wrapper):
        refused = post(body)
    assert (refused.status_code, refused["Retry-After"]) == (503, "30")
    assert len(failed) == 3
    assert not WebhookEvent.objects.exists()
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert_nothing_is_open()
    assert post(body).status_code == 200


def test_a_process_that_is_told_to_end_leaves_nothing_open() -> None:
    """A worker's server may raise that in the middle, and the process live on for a while."""
    linked()
    wrapper, failed = fail_at("UPDATE", times=1, error=SystemExit)
    body = event_body("consent.revoked")
    with connection.execute_wrapper(wrapper), pytest.raises(SystemExit):
        post(body)
    assert failed
    assert_nothing_is_open()
    assert not WebhookEvent.objects.exists()
    assert post(body).status_code == 200
    assert outcomes() == ["applied"]


@on_postgresql
@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
@pytest.mark.parametrize("event_type", ["claim.issued", "consent.revoked"])
def test_a_shorter_time_out_of_the_sites_own_stays(limit: str, event_type: str) -> None:
    """Somebody held the row for longer than the site lets anybody wait: 503, and then 200."""
    linked()
    body = event_body(event_type)
    held = connection.settings_dict
    options = {**held["OPTIONS"], "options": f"-c {limit}=50"}
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN; UPDATE django_identity_linkedidentity SET refetch_failures = 3")
        connection.close()
        connection.settings_dict = {**held, "OPTIONS": options}
        assert post(body).status_code == 503
    finally:
        other.close()
        connection.close()
        connection.settings_dict = held
    assert not WebhookEvent.objects.exists()
    assert_nothing_is_open()
    assert post(body).status_code == 200
    assert outcomes() == ["applied"]


def test_a_locked_row_is_waited_for_three_seconds() -> None:
    """Then it is 503; the connection's own limit is in force again afterwards."""
    linked()
    body = event_body("claim.issued")
    before = own_limit()
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        LinkedIdentity.objects.update(refetch_failures=3)
        began_at = time.monotonic()
        status, after = pool.submit(alone, lambda: (post(body).status_code, own_limit())).result()
        waited = time.monotonic() - began_at
    assert (status, after) == (503, before)
    assert 2.5 < waited < 4.5
    assert post(body).status_code == 200


def own_limit() -> object:
    """How long this connection waits for a lock."""
    statements = {
        "postgresql": "SHOW lock_timeout",
        "mysql": "SELECT @@innodb_lock_wait_timeout",
        "sqlite": "PRAGMA busy_timeout",
    }
    with connection.cursor() as cursor:
        cursor.execute(statements[connection.vendor])
        return cursor.fetchone()


def assert_nothing_is_open() -> None:
    """No session of PostgreSQL sits in a transaction, and no subject is locked.

    The server takes a moment to notice that somebody has gone.
    """
    if connection.vendor != "postgresql":
        return
    gives_up = time.monotonic() + PATIENCE
    while (left := _open_in_postgresql()) != (0, 0) and time.monotonic() < gives_up:
        time.sleep(0.02)
    assert left == (0, 0)


def _open_in_postgresql() -> tuple[int, int]:
    """The sessions in a transaction, and the locked subjects."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT COUNT(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'),"
            " (SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        sessions, locks = cursor.fetchone()
        return sessions, locks
