"""The bounds of upkeep: how much, how long, for whom, and what one row's trouble may cost."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.upkeep import due_rows, jobs
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import DailyTally, LinkedIdentity, TallyName, TokenGrant
from django_identity.service import budget
from tests.hostile import HostileService, html
from tests.lifecycle.conftest import Published
from tests.records import make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def make_due(number: int, *, ago: timedelta = MINUTE, **fields: Any) -> LinkedIdentity:
    held = {"refetch_due_at": timezone.now() - ago, "subject": f"subject-{number}", **fields}
    return make_identity(make_user(f"user-{number}"), **held)


def make_expiring(number: int, *, days: float, **elsewhere: str) -> LinkedIdentity:
    """Its grant runs out after that many days, and nothing used it for three."""
    identity = make_due(number, ago=-MINUTE)
    now = timezone.now()
    make_grant(
        identity,
        refresh_token=f"rt-{number}-0",
        refresh_expires_at=now + timedelta(days=days),
        access_expires_at=now - 3 * DAY,
    )
    if elsewhere:
        LinkedIdentity.objects.filter(pk=identity.pk).update(**elsewhere)
    return identity


def row(identity: LinkedIdentity) -> LinkedIdentity:
    return LinkedIdentity.objects.get(pk=identity.pk)


def free() -> int:
    return LinkedIdentity.objects.filter(refetch_taken_until=None).count()


# The sweep


def test_a_sweep_looks_for_vanished_keys(service: HostileService, published: Published) -> None:
    """What a key that is published no more has signed is handed out by the same sweep."""
    identity = make_due(1, ago=-DAY, credential_kid="k0")
    assert jobs.sweep() == 1
    assert published() == [[[identity.pk]]]


def test_a_broker_that_takes_nothing_keeps_no_page(
    service: HostileService, dead_broker: None
) -> None:
    """Not only the chunk that was refused: all that was taken with it is free for the next."""
    for number in range(jobs.CHUNK + 2):
        make_due(number)
    assert jobs.sweep() == 0
    assert free() == jobs.CHUNK + 2


def test_a_sweep_hands_out_what_the_budget_allows(
    service: HostileService, published: Published
) -> None:
    """Three calls for each, two minutes long: the rest is for when the queue is empty."""
    for number in range(7):
        make_due(number)
    with override_settings(DJANGO_IDENTITY={"default": service.settings(RATE_LIMIT="5/min")}):
        assert jobs.sweep() == 3
        assert jobs.sweep() == 0


def test_many_failures_are_no_lost_workers(service: HostileService) -> None:
    """Only work that was begun and never ended tells of a worker that died."""
    identity = make_due(1, refetch_failures=9)
    assert list(due_rows.take(conf.application())) == [[identity.pk]]


def test_a_taken_row_comes_back_in_time(service: HostileService) -> None:
    """Five minutes after it was handed out or work on it began; the docs say so."""
    identity = make_due(1)
    list(due_rows.take(conf.application()))
    for minutes in (5, 5):
        taken_until = row(identity).refetch_taken_until
        assert taken_until is not None
        lasts = taken_until - timezone.now()
        assert minutes * MINUTE - timedelta(seconds=30) < lasts <= minutes * MINUTE
        due_rows.start(row(identity))


def test_letting_go_spares_what_somebody_works_on(service: HostileService) -> None:
    """A sweep whose broker failed cannot take a row out of a worker's hands."""
    identity = make_due(1)
    assert due_rows.start(row(identity))
    due_rows.let_go([identity.pk])
    assert row(identity).refetch_taken_until is not None


def test_vanished_keys_are_marked_a_bounded_number_at_a_time(
    service: HostileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never those of the other environment, whose keys are other ones."""
    monkeypatch.setattr(due_rows, "MOST_MARKED", 2)
    for number in range(3):
        make_due(number, ago=-DAY, credential_kid="k0")
    make_due(9, ago=-DAY, credential_kid="k0", environment="live")
    assert [due_rows.mark_vanished_keys(conf.application()) for _ in range(3)] == [2, 1, 0]


# A chunk


def test_a_chunk_ends_before_its_time_limit(
    service: HostileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be done in time is let go, not lost with a killed process."""
    monkeypatch.setattr(jobs, "LONGEST_WORK", 0.0)
    ids = [make_due(number).pk for number in range(3)]
    list(due_rows.take(conf.application()))
    assert jobs.refetch_chunk(ids).total() == 1
    assert free() == 3


@pytest.mark.parametrize("elsewhere", [{"application": "gone"}, {"environment": "live"}])
def test_a_chunk_touches_nobody_elses_rows(
    service: HostileService, elsewhere: dict[str, str]
) -> None:
    """A task that waited while the site was set up anew for something else."""
    identity = make_due(1, **elsewhere)
    assert jobs.refetch_chunk([identity.pk]) == {}
    assert service.requests == []


def test_a_row_that_cannot_be_stored_stops_nobody_else(service: HostileService) -> None:
    """The database answers, it only refuses one row's values: that row alone is put off."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        service.answers["claims"] = service.good("claims")

    service.meanwhile["claims"] = turn
    broken, other = make_due(1, ago=2 * MINUTE), make_due(2)
    for number, identity in enumerate((broken, other)):
        make_grant(identity, refresh_token=f"rt-{number}-0")
    refused: list[str] = []

    def refusing(execute: Any, sql: str, *rest: Any) -> Any:
        if not refused and sql.startswith("UPDATE") and "credential_kid" in sql:
            refused.append(sql)
            raise DataError("value too long: subject-1")
        return execute(sql, *rest)

    with connection.execute_wrapper(refusing):
        tally = jobs.refetch_chunk([broken.pk, other.pk])
    assert tally == {Refetched.FAILED: 1, Refetched.STORED: 1}
    assert row(broken).last_error == "unexpected_error"
    assert row(broken).refetch_due_at > timezone.now()


def test_a_database_that_does_not_answer_is_nobodys_failure(service: HostileService) -> None:
    """The work ends there and is said to; the row comes back when its lease has run out."""
    identity = make_due(1)
    make_grant(identity)

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        if "_storedclaim" in sql:
            raise OperationalError
        return execute(sql, *rest)

    with connection.execute_wrapper(failing), pytest.raises(OperationalError):
        jobs.refetch_chunk([identity.pk])
    assert row(identity).last_error == ""
    assert row(identity).refetch_due_at == identity.refetch_due_at
    assert row(identity).refetch_taken_until is not None


def test_a_chunk_is_counted_for_the_overview(service: HostileService) -> None:
    """What was stored and what failed, each for its day; what is not due counts as nothing."""
    service.subject = "subject-1"
    stored, failed, early = make_due(1), make_due(2), make_due(3, ago=-MINUTE)
    for number, identity in enumerate((stored, failed, early)):
        make_grant(identity, refresh_token=f"rt-{number}-0")
    jobs.refetch_chunk([stored.pk, failed.pk, early.pk])
    counted = DailyTally.objects.values_list("application", "environment", "name", "count")
    assert sorted(counted) == [
        ("default", "test", TallyName.REFETCH_FAILED, 1),
        ("default", "test", TallyName.REFETCHED, 1),
    ]


def test_the_log_does_not_quote_what_could_not_be_stored(
    service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """The name of an unexpected error says enough; its message may hold a person's data."""
    service.subject = "subject-1"
    identity = make_due(1)
    make_grant(identity)
    LinkedIdentity.objects.update(subject_digest="no digest")
    with caplog.at_level(logging.DEBUG, "django_identity"):
        assert jobs.refetch_chunk([identity.pk]) == {Refetched.FAILED: 1}
    assert "ValueError" in caplog.text
    assert "no digest" not in caplog.text


# Grants that run out


def test_the_grant_that_runs_out_first_comes_first(
    service: HostileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded number each hour, and those that are nearest to their end."""
    monkeypatch.setattr(jobs, "MOST_GRANTS", 1)
    make_expiring(1, days=4)
    first = make_expiring(2, days=1)
    assert jobs.keep_alive() == 1
    assert TokenGrant.objects.get(generation=2).identity_id == first.pk


@pytest.mark.parametrize("elsewhere", [{"application": "gone"}, {"environment": "live"}])
def test_grants_that_are_not_ours_take_nobodys_place(
    service: HostileService, monkeypatch: pytest.MonkeyPatch, elsewhere: dict[str, str]
) -> None:
    """However many a removed application or another environment left behind."""
    monkeypatch.setattr(jobs, "MOST_GRANTS", 1)
    make_expiring(1, days=1, **elsewhere)
    ours = make_expiring(2, days=4)
    assert jobs.keep_alive() == 1
    assert TokenGrant.objects.get(generation=2).identity_id == ours.pk


def test_keeping_alive_ends_before_its_time_limit(
    service: HostileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is for the next hour."""
    monkeypatch.setattr(jobs, "LONGEST_WORK", 0.0)
    make_expiring(1, days=1)
    assert jobs.keep_alive() == 0
    assert service.requests == []


def test_keeping_alive_leaves_a_service_alone_that_is_away(service: HostileService) -> None:
    """After five failures no more grants are tried, in this run and in the next."""
    for number in range(8):
        make_expiring(number, days=1 + number / 10)
    service.answers["token"] = html("500 Oops")
    assert jobs.keep_alive() == 0
    assert service.calls("token") == budget.FAILURES_IN_A_ROW
    assert jobs.keep_alive() == 0
    assert service.calls("token") == budget.FAILURES_IN_A_ROW
    assert TokenGrant.objects.filter(lease_until=None).count() == 8
