"""Prepared statements: the same meaning, planned once, and nothing that a site would notice."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Value
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.handlers import EventType
from django_identity.lifecycle.events.exchange import Answer, in_few_messages
from django_identity.lifecycle.events.statements import selecting, text
from django_identity.models import EventOutcome, WebhookEvent
from tests.databases import nothing_fails, on_postgresql
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_events import NOW, linked
from tests.lifecycle.test_intake_cost import MOST_STATEMENTS, statements
from tests.records import make_user
from tests.servers import storm

pytestmark = [pytest.mark.django_db(transaction=True), on_postgresql]

ABOUT = {"kyc_level": "level_2", "claim_type": "age_over_18", "note": "a note"}
FEW = 5  # deliveries after which nothing is, as the docs say
ENOUGH = 8  # deliveries after which all that will ever be prepared is


@pytest.fixture(autouse=True)
def _fresh_connection() -> Iterator[None]:
    """What other tests had prepared is forgotten, and what these had."""
    connection.close()
    yield
    connection.close()


def prepared() -> list[str]:
    """The names on this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements")
        return [name for (name,) in cursor.fetchall()]


def test_a_connection_that_serves_few_requests_prepares_nothing() -> None:
    """To prepare a statement for a few uses would cost more than to run it so often."""
    for _ in range(FEW):
        deliver("kyc.verified")
    assert not prepared()
    deliver("kyc.verified")
    assert prepared()


def test_a_connection_that_serves_many_keeps_its_statements() -> None:
    """Each of them once, under a name that says whose it is."""
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    names = prepared()
    assert names
    assert all(name.startswith("django_identity_") for name in names)
    deliver("kyc.verified")
    assert prepared() == names


@pytest.mark.parametrize("event_type", [*EventType, "wallet.opened"])
def test_the_effect_is_the_same(event_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of many and the last one leave the same behind, with everything prepared."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    ends = []
    for _ in range(ENOUGH):
        storm.clear()
        linked()
        deliver(event_type, event_id="evt_same", at=NOW, **ABOUT)
        ends.append(storm.end_state())
    assert prepared()
    assert not storm.differences(ends[-1], ends[0])


def test_no_kind_of_event_is_taken_for_another() -> None:
    """Each has a name of its own on the one connection."""
    linked()
    for event_type in [*EventType, "wallet.opened"]:
        for _ in range(ENOUGH):
            deliver(event_type, **ABOUT)
    assert len(set(prepared())) == len(prepared()) > len(EventType)


def test_a_late_one_is_still_told_from_a_new_one() -> None:
    identity = linked()
    for number in range(ENOUGH):
        deliver("kyc.verified", at=NOW + timedelta(seconds=number), kyc_level="level_1")
    deliver("kyc.rejected", at=NOW - timedelta(seconds=1))
    deliver("kyc.verified", at=NOW - timedelta(seconds=1), kyc_level="level_3")
    identity.refresh_from_db()
    assert identity.kyc_level == "level_1"
    outcomes = WebhookEvent.objects.order_by("-pk").values_list("outcome", flat=True)
    assert list(outcomes[:2]) == [EventOutcome.SUPERSEDED] * 2


def test_a_repeat_is_still_told_from_a_new_one() -> None:
    identity = linked()
    body = event_body("kyc.verified", at=NOW, kyc_level="level_1")
    assert [post(body).status_code for _ in range(ENOUGH)] == [200] * ENOUGH
    assert WebhookEvent.objects.count() == 1
    deliver("kyc.verified", at=NOW + timedelta(seconds=1), kyc_level="level_3")
    assert post(body).status_code == 200
    identity.refresh_from_db()
    assert identity.kyc_level == "level_3"


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("event_type", EventType)
def test_it_takes_no_more_statements_than_before(event_type: str) -> None:
    linked()
    for _ in range(ENOUGH):
        deliver(event_type, at=NOW - timedelta(hours=2))
    with CaptureQueriesContext(connection) as captured:
        deliver(event_type, at=NOW - timedelta(hours=2))
    assert len(statements(captured)) <= MOST_STATEMENTS
    assert len(captured) <= 3


def test_what_is_prepared_names_nobody() -> None:
    """The texts stay with the server as long as the connection lives."""
    linked()
    for event_type in [*EventType] * ENOUGH:
        deliver(event_type, **ABOUT)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        texts = " ".join(text for (text,) in cursor.fetchall())
    assert "INSERT INTO" in texts
    assert not [said for said in ("subject-1", "a note", "age_over_18", "evt_") if said in texts]


def test_a_dead_connection_is_replaced_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the site has Django check it; what was prepared died with it."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", True)
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            process = connection.connection.info.backend_pid
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
    finally:
        other.close()
    connection.close_if_unusable_or_obsolete()  # as before each request
    with nothing_fails():
        deliver("kyc.verified")
    assert WebhookEvent.objects.count() == ENOUGH + 1


def test_a_new_connection_begins_anew() -> None:
    """What was prepared went with the one before."""
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    connection.close()
    deliver("kyc.verified")
    assert not prepared()
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    assert prepared()


def test_what_is_the_same_each_time_may_look_like_a_place() -> None:
    """Before the statement is prepared, and after."""
    make_user("ada")
    said = selecting(
        lambda: (
            User.objects.annotate(said=Value("50%s of $1%%"))
            .filter(username=text("name"))
            .values_list("said")
        )
    )
    for _ in range(ENOUGH):
        with in_few_messages() as exchange:
            answer = exchange.send(said, values={"name": "ada"}, is_last=True)
        assert answer == Answer(1, ("50%s of $1%%",))
    assert prepared()


def test_a_closed_connection_is_not_kept() -> None:
    """Nor what is known of it: a site may open one for each request."""
    deliver("kyc.verified")
    closed = weakref.ref(connection.connection)
    connection.close()
    gc.collect()
    assert closed() is None


def test_somebody_else_may_take_them_away() -> None:
    """Whoever uses the connection, too; the delivery is taken in all the same."""
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    deliver("kyc.verified")
    assert WebhookEvent.objects.count() == ENOUGH + 1


def test_somebody_else_may_have_prepared_them() -> None:
    """Under the same names; nothing is prepared beside them."""
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    names = prepared()
    connection.close()
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"PREPARE {name} AS SELECT 1")
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    assert WebhookEvent.objects.count() == 2 * ENOUGH


def test_a_pool_gives_the_same_connection_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed by Django it lives on, without what it had prepared; so it does without."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", {"min_size": 1, "max_size": 1})
    try:
        for _ in range(ENOUGH):
            deliver("kyc.verified")
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
        for _ in range(2 * ENOUGH):
            deliver("kyc.verified")
        assert not prepared()
        assert WebhookEvent.objects.count() == 3 * ENOUGH
    finally:
        connection.close()
        connection.close_pool()


def test_their_tables_may_be_altered() -> None:
    """By a migration, under a web process that goes on."""
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    width = WebhookEvent._meta.get_field("outcome").max_length
    column = f'ALTER TABLE "{WebhookEvent._meta.db_table}" ALTER COLUMN "outcome" TYPE varchar'
    with connection.cursor() as cursor:
        cursor.execute(f"{column}({width + 1})")
    try:
        deliver("kyc.verified")
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"{column}({width})")
    assert WebhookEvent.objects.count() == ENOUGH + 1


def test_a_site_that_says_it_has_a_pooler_prepares_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the setting that Django has for it."""
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    for _ in range(ENOUGH):
        deliver("kyc.verified")
    assert not prepared()


def test_a_site_whose_driver_takes_one_statement_at_a_time_prepares_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With parameters bound by the server; every delivery is taken in all the same."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "server_side_binding", True)
    linked()
    for number in range(ENOUGH):
        deliver("kyc.verified", at=NOW + timedelta(seconds=number))
    assert not prepared()
    assert WebhookEvent.objects.filter(outcome=EventOutcome.APPLIED).count() == ENOUGH
