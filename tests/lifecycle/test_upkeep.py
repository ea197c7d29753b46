"""What is due is taken once, worked on once, and comes back if its worker dies."""

import logging
import signal
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import conf
from django_identity.handlers import on_event
from django_identity.lifecycle.ground import runs
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import due
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from tests import concurrency
from tests.databases import on_servers, pointed_at
from tests.factories import LONG_AGO, make_event, make_identity, make_user
from tests.fake_service import INVALID_GRANT, answer, html, http, refusal
from tests.lifecycle import process_calls
from tests.lifecycle.broken_statements import refused
from tests.lifecycle.refetches import (
    DOWN,
    all_refetched,
    answer_everybody,
    make_due,
    make_many_due,
)

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
SLOW = http(b"", status="429 Slow", headers="Retry-After: 30\r\n")


def row(identity):
    return LinkedIdentity.objects.get(pk=identity.pk)


def taken(most=20):
    return sorted(each.pk for each in due.take(most))


@pytest.fixture
def everybody(service):
    answer_everybody(service)
    return service


# Taking rows


def test_what_is_due_is_taken_once(identity_clock):
    """The longest due first, and never what is not due, or not of this site's settings.

    After five minutes it comes back, so that the row of a worker that died is served; the version
    stays as it was read.
    """
    ids = [make_due(n, ago=timedelta(minutes=n + 1)).pk for n in range(5)]
    make_due(7, ago=-HOUR)
    make_due(8, refetch_due_at=None)
    make_due(9, environment="live")
    assert [taken(2) for _ in range(4)] == [ids[3:], ids[1:3], ids[:1], []]
    identity_clock.advance(minutes=4, seconds=50)
    assert taken() == []
    identity_clock.advance(seconds=11)
    assert taken() == ids
    assert set(LinkedIdentity.objects.values_list("version", flat=True)) == {0}


def test_whom_an_event_made_due_waits_for_nobody(everybody):
    """Who is verified now is read before those who are overdue."""
    overdue = make_due(0)
    verified = make_due(1, ago=timedelta())
    for _ in range(2):
        upkeep.refetch_for_a_minute(1, only=verified.pk)
        due = LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now())
        assert list(due) == [overdue]


@on_servers
def test_several_workers_at_once_take_each_row_once():
    """Four processes of two threads each: every due row is taken by exactly one.

    On a busy MySQL all of them passed over rows that others had locked, and stopped. What is left
    is due still, and the next worker takes it.
    """
    ids = sorted(make_due(n).pk for n in range(60))
    workers = concurrency.in_processes(4, process_calls.take, threads=2)
    at_once = [pk for worker in workers for pk in worker]
    left = process_calls.take()
    assert at_once
    assert connection.vendor == "mysql" or left == []
    assert sorted(at_once + left) == ids


@pytest.mark.skipif(connection.vendor != "sqlite", reason="others scan small tables")
def test_due_rows_are_found_by_an_index():
    rows = due.rows().order_by("refetch_due_at", "pk")[:20]
    assert "identity_refetch_due" in rows.explain()


def test_seven_statements_at_most(everybody):
    """With a refresh, besides taking the row: read, lease and store the grant, ask for events,
    store the identity, read and write its claims.
    """
    identity = make_due(1, scopes=["kyc:read", "claims:read"])
    all_refetched()
    past = timezone.now() - timedelta(minutes=1)
    LinkedIdentity.objects.update(refetch_due_at=past)
    TokenGrant.objects.update(access_expires_at=past)
    everybody.disclosed = {"age_over_18": False}
    with CaptureQueriesContext(connection) as captured:
        assert list(upkeep.refetch_these([identity.pk])) == [Refetched.STORED]
    queries = [
        q["sql"] for q in captured if not q["sql"].startswith(("BEGIN", "COMMIT"))
    ]
    assert any("UPDATE" in query and "storedclaim" in query for query in queries)
    # The first one reads the row, as taking it does.
    assert len(queries[1:]) <= 7, "\n".join(queries)


# What ends a run


def test_outages_between_answers_end_nothing(everybody):
    """They are some persons' own."""
    answer_everybody(everybody, fails=lambda _: everybody.calls("claims") % 2)
    make_many_due(6)
    assert all_refetched() == [Refetched.OUTAGE, Refetched.STORED] * 3


DEAD, FAILED = [Refetched.REAUTHORIZATION_NEEDED] * 4, [Refetched.FAILED] * 4
OUTAGE = [Refetched.OUTAGE] * 2
#: What an endpoint says, and what becomes of four people whose tokens have run out.
TOLD = {
    "invalid_grant": ("token", INVALID_GRANT, DEAD),
    "invalid_request": (
        "token",
        answer({"error": "invalid_request"}, status="400 No"),
        FAILED,
    ),
    "in the envelope": ("token", refusal("X", "403 No"), FAILED),
    "without a code": ("token", answer({"detail": "no"}, status="422 No"), FAILED),
    "a page": ("token", html("403 Forbidden"), FAILED),
    "an error of theirs": (
        "token",
        answer({"error": "invalid_grant"}, status="503 No"),
        OUTAGE,
    ),
    "and of the claims": ("claims", DOWN, OUTAGE),
}


@pytest.mark.parametrize(("endpoint", "said", "outcomes"), TOLD.values(), ids=TOLD)
def test_what_an_endpoint_says_is_about_one_person_or_all(
    service,
    endpoint,
    said,
    outcomes,
):
    """What is about one person holds up nobody else. Only a dead grant asks for a new sign-in.

    An outage ends the run at the second in a row.
    """
    make_many_due(4)
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.answers[endpoint] = said

    assert all_refetched() == outcomes

    assert service.calls(endpoint) == len(outcomes)
    ended = TokenGrant.objects.filter(needs_reauthorization=True).count()
    assert ended == outcomes.count(Refetched.REAUTHORIZATION_NEEDED)


def test_a_rejected_client_ends_a_run_at_once(service, caplog):
    """It is about the application, nobody loses a grant, and cron's mail and the log say so."""
    make_many_due(3)
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.answers["token"] = answer(
        {"error": "invalid_client"},
        status="401 Unauthorized",
    )
    with pytest.raises(CommandError, match="rejects this site"):
        call_command("identity_upkeep")
    assert service.calls("token") == 1
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "ClientRejected" in line.getMessage()


def test_429_pauses_upkeep_of_the_application(service, published):
    """Until its end nothing is asked."""
    make_many_due(23)
    service.answers["claims"] = SLOW
    assert all_refetched() == [Refetched.NOT_NOW]
    assert all_refetched() == []
    upkeep.run_with_workers()
    assert published() == []
    assert service.calls("claims") == 1
    assert due.count() == 3
    assert LinkedIdentity.objects.filter(last_error="rate_limited").count() == 1


@pytest.mark.parametrize(("asked", "seconds"), [("300", 300), ("0", 1)])
def test_a_pause_is_as_long_as_the_service_asks_for(
    service,
    identity_clock,
    asked,
    seconds,
):
    """A second at least. Every process reads it in the database, and a shorter one ends it not."""
    make_due()
    service.answers["claims"] = http(
        b"",
        status="429 Slow",
        headers=f"Retry-After: {asked}\r\n",
    )
    assert all_refetched() == [Refetched.NOT_NOW]
    runs.pause(until=timezone.now() + timedelta(milliseconds=1))
    identity_clock.advance(seconds=seconds - 1)
    assert runs.is_paused()
    identity_clock.advance(seconds=1)
    assert not runs.is_paused()


# A missing key


def test_a_missing_key_ends_a_run_at_once_and_nobodys_grant(everybody, identity_clock):
    """Cron's mail says what to do. When the key is back, all goes on, level and due date too."""
    make_many_due(5)
    lost = everybody.settings(ENCRYPTION_KEYS=["another key, sixteen long"])
    missing = pytest.raises(CommandError, match="former key back")
    with override_settings(DJANGO_IDENTITY=lost), missing:
        call_command("identity_upkeep")
    assert everybody.calls("claims") + everybody.calls("token") == 0
    [touched] = LinkedIdentity.objects.exclude(last_error="")
    assert touched.last_error == "sealed_value_unreadable"
    assert touched.refetch_failures == 1
    waits = touched.refetch_due_at - timezone.now()
    assert timedelta() < waits < timedelta(minutes=2)
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    assert LinkedIdentity.objects.filter(kyc_level="level_2").count() == 5
    identity_clock.advance(minutes=5)

    assert all_refetched() == [Refetched.STORED] * 5


def corrupt(*identities):
    grants = TokenGrant.objects.filter(identity__in=identities)
    grants.update(access_token="gAAAAA", refresh_token="gAAAAA")


def one_by_one(monkeypatch):
    """Rows are taken in the order of their due dates, and not by chance."""
    monkeypatch.setattr(due.random, "shuffle", lambda rows: None)


def test_one_corrupt_row_stops_nobody_else(everybody, monkeypatch, identity_clock):
    """Between others it is passed over. As the first of a run it costs the others five minutes."""
    one_by_one(monkeypatch)
    made = [make_due(n, ago=timedelta(minutes=60 - n)) for n in range(4)]
    corrupt(made[1])
    stored, unreadable = Refetched.STORED, Refetched.UNREADABLE
    assert all_refetched() == [stored, unreadable, stored, stored]
    LinkedIdentity.objects.filter(pk=made[1].pk).update(
        refetch_due_at=made[1].refetch_due_at,
    )
    make_due(5, ago=timedelta(minutes=1))
    assert all_refetched() == [unreadable]
    identity_clock.advance(minutes=5)
    monkeypatch.setattr(due.random, "shuffle", list.reverse)
    assert all_refetched() == [stored, unreadable]


@pytest.mark.parametrize("between", ["nothing", "a failure"])
def test_two_unreadable_rows_in_a_row_end_a_run(everybody, monkeypatch, between):
    """With nothing opened between them: that is no longer one corrupt row."""
    one_by_one(monkeypatch)
    made = [make_due(n, ago=timedelta(minutes=60 - n)) for n in range(5)]
    corrupt(made[1], made[3] if between == "a failure" else made[2])
    if between == "a failure":
        TokenGrant.objects.filter(identity=made[2]).update(
            retry_at=timezone.now() + HOUR,
            access_expires_at=timezone.now(),
        )
    outcomes = all_refetched()
    assert outcomes[0] == Refetched.STORED
    assert outcomes[-1] == Refetched.UNREADABLE
    assert outcomes.count(Refetched.UNREADABLE) == 2
    assert everybody.calls("claims") == 1


def test_a_database_that_does_not_answer_ends_a_run(everybody, identity_clock):
    """It is nobody's failure. What was taken comes back in five minutes."""
    make_many_due(3)
    with refused("", "_storedclaim"), pytest.raises(OperationalError):
        all_refetched()
    assert not LinkedIdentity.objects.exclude(last_error="").exists()
    identity_clock.advance(minutes=5)
    assert due.count() == 3


# One row's trouble


@pytest.mark.parametrize("why", ["dead grant", "disabled account", "hidden account"])
def test_a_person_who_must_come_again_is_due_no_more(service, hiding, why):
    """Nothing is asked about them, and nothing is taken for them again."""
    identity = make_due()
    if why == "dead grant":
        TokenGrant.objects.update(
            needs_reauthorization=True,
            access_token="",
            refresh_token="",
        )
    elif why == "disabled account":
        User.objects.update(is_active=False)
    else:
        User.objects.update(last_name="Closed")
    assert all_refetched() == [Refetched.REAUTHORIZATION_NEEDED]
    assert row(identity).refetch_due_at is None
    assert row(identity).refetch_failures == 0
    assert service.calls("claims") + service.calls("token") == 0


# Workers


def test_messages_name_no_person(everybody, published, monkeypatch):
    """One for each 20 due rows, so that the messages of a minute suffice for many threads.

    ``REFETCHES_PER_MINUTE`` is the limit of the calls, however much is due.
    """
    assert due.ROWS_AT_ONCE == 20
    monkeypatch.setattr(due, "ROWS_AT_ONCE", 4)
    make_many_due(9)
    upkeep.run_with_workers()
    assert published() == [[4], [4], [1]]
    assert due.count() == 9

    setting = everybody.settings(REFETCHES_PER_MINUTE=3)
    with override_settings(DJANGO_IDENTITY=setting):
        upkeep.run_with_workers()
        assert published()[3:] == [[3]]
        assert upkeep.refetch_for_a_minute(1).total() == 1
        assert upkeep.run()[1].total() == 3


def test_a_dead_broker_loses_nothing(dead_broker):
    """What it does not take stays due."""
    make_due()
    upkeep.run_with_workers()
    assert due.count() == 1


@pytest.mark.parametrize("ends", ["after a minute", "at a shutdown"])
def test_a_message_ends_early(everybody, identity_clock, monkeypatch, ends):
    """The row in hand is finished; the others of its twenty are due in five minutes."""
    monkeypatch.setattr(
        upkeep,
        "LONGEST_RUN",
        0.0 if ends == "after a minute" else 60.0,
    )
    make_many_due(5)
    is_stopping = ends == "at a shutdown"
    tally = upkeep.refetch_for_a_minute(stop=lambda: is_stopping)
    assert tally == {Refetched.STORED: 1}
    identity_clock.advance(minutes=5)
    assert due.count() == 4


# What is known of a run


# All upkeep by one command


@pytest.fixture
def old_sign_in():
    AuthorizationRequest.objects.create(
        environment="test",
        expires_at=timezone.now() - 25 * HOUR,
    )


@pytest.mark.usefixtures("old_sign_in")
def test_one_command_does_everything(everybody, capsys):
    """Erasures, handlers, purge, re-fetches; a second run finds nothing to do.

    It is noted when a run began, whether or not anything was due, and so it is of one by workers.
    """
    now = timezone.now()
    identity = make_due(1)
    forgotten = make_identity(make_user("forgotten"), subject="forgotten")
    ErasureReceipt.objects.create(
        account=str(forgotten.user_id),
        requested_at=now,
        next_attempt_at=now,
    )
    event = make_event(identity, "kyc.verified", next_attempt_at=now - HOUR)
    handled = []
    on_event("kyc.verified", name="upkeep")(lambda event: handled.append(event.pk))
    assert not runs.newest().has_begun
    call_command("identity_upkeep")
    first = runs.newest()
    assert first.has_begun
    said = capsys.readouterr().out
    assert said == (
        "erasures that are done: 1\nevents whose handlers are done: 1\n"
        "re-fetches, stored: 1\n"
    )
    call_command("identity_upkeep")
    assert not capsys.readouterr().out
    second = runs.newest().begun_at
    upkeep.run_with_workers()

    assert first.begun_at < second < runs.newest().begun_at
    assert due.count() == 0
    assert not AuthorizationRequest.objects.exists()
    assert handled == [event.pk]
    assert everybody.calls("claims") == 1
    assert not ErasureReceipt.objects.filter(erased_at=None).exists()


@pytest.mark.usefixtures("ctrl_c", "old_sign_in")
def test_a_run_that_is_stopped_begins_nothing_more(service):
    """Ctrl-C while a handler runs: neither the purge nor a re-fetch begins."""
    identity = make_due(1)
    make_event(identity, "kyc.verified", next_attempt_at=timezone.now() - HOUR)
    on_event("kyc.verified", name="stopped")(
        lambda event: signal.raise_signal(signal.SIGINT),
    )
    with pytest.raises(CommandError, match="Stopped") as stopped:
        call_command("identity_upkeep")
    assert stopped.value.returncode == 130
    assert AuthorizationRequest.objects.exists()
    assert service.requests == []


@pytest.mark.usefixtures("old_sign_in")
def test_old_rows_that_the_database_protects_hold_up_nothing(everybody, caplog):
    """A table of the site points at them, or a trigger keeps them: known after ``EVENT_DAYS``."""
    identity = make_due(1)
    event = make_event(identity, "claim.issued", received_at=LONG_AGO)
    with pointed_at(event):
        _events, tally = upkeep.run()
    assert tally == {Refetched.STORED: 1}
    assert not AuthorizationRequest.objects.exists()
    [line] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert line.event == "identity.erasure.failed"
    assert line.models == "django_identity.WebhookEvent"


def test_old_events_go_whole(monkeypatch):
    """In batches."""
    monkeypatch.setattr(upkeep, "PURGED_AT_ONCE", 1)
    identity = make_due(1, ago=-HOUR)
    days = conf.application().event_days
    for age in (days - 1, days + 1, days + 1):
        received_at = timezone.now() - timedelta(days=age)
        make_event(identity, "kyc.verified", received_at=received_at)
    upkeep.purge()
    assert [event.event_id for event in WebhookEvent.objects.all()] == ["event-0"]
