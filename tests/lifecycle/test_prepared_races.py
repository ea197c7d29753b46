"""Prepared statements that meet somebody else's transaction, or failed: as they are without it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from django_identity.handlers import EventType
from django_identity.lifecycle.events import prepared
from django_identity.models import Consent, LinkedIdentity, TokenGrant, WebhookEvent
from tests.databases import on_postgresql
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_events import linked, outcomes
from tests.lifecycle.test_intake_failures import (
    assert_it_is_begun_anew,
    fail_at,
)
from tests.lifecycle.test_intake_races import WITHDRAWALS, arrive, lock_row
from tests.lifecycle.waiting import PATIENCE, delivered_during, until_waiting

pytestmark = [pytest.mark.django_db(transaction=True), on_postgresql]


@pytest.fixture(autouse=True)
def _at_first_sight(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything is prepared when it is first met, which another thread's connection would not."""
    monkeypatch.setattr(prepared, "USES_AS_IT_IS", 0)
    connection.close()
    yield
    connection.close()


@pytest.mark.parametrize("event_type", WITHDRAWALS)
def test_a_withdrawal_waits_for_a_sign_in_and_ends_it(event_type: str) -> None:
    """It looks for the identity only when its wait is over."""
    assert delivered_during(arrive, event_body(event_type)) == [200]
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert not TokenGrant.objects.exists()


@pytest.mark.parametrize("event_type", [*EventType])
def test_an_event_waits_for_the_row_and_applies(event_type: str) -> None:
    linked()
    assert delivered_during(lock_row, event_body(event_type)) == [200]
    assert outcomes() == ["applied"]
    assert LinkedIdentity.objects.get().last_event_digest == WebhookEvent.objects.get().event_digest


def test_an_event_waits_for_a_migration_that_writes_the_table_anew() -> None:
    """To a look from before the rows were written anew the table would be empty."""
    linked()
    table = f'ALTER TABLE "{LinkedIdentity._meta.db_table}"'
    with ThreadPoolExecutor(1) as pool, connection.cursor() as cursor:
        pool.submit(deliver, "consent.revoked", subject="nobody").result(PATIENCE)
        with transaction.atomic():
            cursor.execute(f"{table} ADD COLUMN added float NOT NULL DEFAULT random()")
            sent = pool.submit(post, event_body("consent.revoked"))
            until_waiting(1)
        assert sent.result(PATIENCE).status_code == 200
        pool.submit(connections.close_all).result(PATIENCE)
        cursor.execute(f"{table} DROP COLUMN added")
    assert outcomes() == ["ignored", "applied"]
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


@pytest.mark.parametrize("word", ["SELECT pg_backend_pid", "PREPARE", "BEGIN", "COMMIT"])
def test_what_fails_half_way_is_begun_anew(word: str) -> None:
    """Whichever message it was: nothing of the first try is left, and its locks are free."""
    assert_it_is_begun_anew(word)


def test_a_deadlock_is_no_reason_to_prepare_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a pool is the same one afterwards."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", {"min_size": 1, "max_size": 1})
    wrapper, failed = fail_at("EXECUTE", times=1)
    try:
        with connection.execute_wrapper(wrapper):
            deliver("kyc.verified")
            deliver("claim.issued")
        assert failed
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM pg_prepared_statements WHERE statement ~ 'INSERT'")
            assert cursor.fetchone() == (2,)
    finally:
        connection.close()
        connection.close_pool()
