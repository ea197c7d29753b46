"""Jobs run by the database's memory, whatever beat remembers; one command does without a worker."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_identity import conf, tasks
from django_identity.background import TaskName
from django_identity.exceptions import ServiceUnavailable
from django_identity.handlers import forget, on_event
from django_identity.lifecycle import upkeep
from django_identity.lifecycle.events.receipts import open_receipt
from django_identity.lifecycle.upkeep import jobs
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    Job,
    JobRun,
    LinkedIdentity,
    Purpose,
    TokenGrant,
)
from django_identity.service import budget
from tests.hostile import HostileService, html
from tests.lifecycle.conftest import celery_app
from tests.records import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def published_names() -> list[str]:
    """The tasks that a tick of the sweep publishes."""
    with celery_app("memory://") as app, app.connection_for_read() as connection:
        queue = connection.SimpleQueue(app.conf.task_default_queue)
        queue.clear()
        tasks.sweep()
        names = []
        while queue.qsize():
            message = queue.get(block=False)
            message.ack()
            names.append(message.headers["task"])
        return sorted(names)


def test_a_tick_of_the_sweep_publishes_what_is_due(service: HostileService) -> None:
    """At the first start, and an hour after it was done; not twice while it waits."""
    hourly = [TaskName.KEEP_ALIVE, TaskName.PURGE]
    assert published_names() == hourly
    assert published_names() == []
    tasks.purge()
    JobRun.objects.update(asked_at=timezone.now() - timedelta(minutes=11))
    assert published_names() == [TaskName.KEEP_ALIVE]
    JobRun.objects.update(done_at=timezone.now() - HOUR, asked_at=timezone.now() - HOUR)
    assert published_names() == hourly


def test_each_job_records_when_it_was_done(service: HostileService) -> None:
    """And none that failed."""
    assert upkeep.last_done() == {}
    for task in (tasks.sweep, tasks.retry_pending, tasks.keep_alive, tasks.purge):
        task()
    assert set(upkeep.last_done()) == set(Job)
    JobRun.objects.filter(job=Job.PURGE).delete()
    with pytest.raises(ZeroDivisionError), upkeep.record_run(Job.PURGE):
        raise ZeroDivisionError
    assert Job.PURGE not in upkeep.last_done()


def test_one_command_does_everything(service: HostileService) -> None:
    """Erasures, handlers, unused grants, purge, re-fetches; a second run finds nothing to do."""
    now = timezone.now()
    due = make_identity(make_user("due"), subject="subject-1", refetch_due_at=now - HOUR)
    make_grant(due)
    # The service publishes no key of this name.
    unproven = make_identity(make_user("old"), subject="old", refetch_due_at=now + HOUR)
    LinkedIdentity.objects.filter(pk=unproven.pk).update(credential_kid="withdrawn")
    unused = make_grant(
        make_identity(make_user("unused"), subject="unused"), refresh_token="rt-unused",
        refresh_expires_at=now + 24 * HOUR, access_expires_at=now - 48 * HOUR,
    )  # fmt: skip
    forgotten = make_identity(make_user("forgotten"), subject="forgotten")
    open_receipt(conf.application(), "forgotten", identity=forgotten, requested_at=now)
    AuthorizationRequest.objects.create(
        state_digest="0" * 64, application="default", environment="test",
        purpose=Purpose.SIGN_IN, expires_at=timezone.now() - HOUR,
    )  # fmt: skip
    event = make_event(due, "kyc.verified", next_attempt_at=timezone.now() - HOUR)
    handled: list[int] = []
    on_event("kyc.verified", name="job_runs")(lambda event: handled.append(event.pk))
    try:
        call_command("identity_upkeep")
        call_command("identity_upkeep")
    finally:
        forget("job_runs")
    assert LinkedIdentity.objects.get(pk=due.pk).refetch_due_at > timezone.now()
    assert not AuthorizationRequest.objects.exists()
    assert handled == [event.pk]
    assert service.calls("claims") == 1
    assert not ErasureReceipt.objects.filter(erased_at=None).exists()
    assert TokenGrant.objects.get(pk=unused.pk).generation == unused.generation + 1
    assert LinkedIdentity.objects.get(pk=unproven.pk).last_error == "reauthorization_needed"


def test_a_run_ends_in_time(service: HostileService, monkeypatch: pytest.MonkeyPatch) -> None:
    """After four minutes no re-fetch begins; the rest stays due and free."""
    monkeypatch.setattr(jobs, "LONGEST_WORK", 0.0)
    for n in range(3):
        due_at = timezone.now() - HOUR
        make_grant(make_identity(make_user(f"u{n}"), subject=f"s-{n}", refetch_due_at=due_at))
    assert upkeep.run_all().refetched.total() == 1
    assert LinkedIdentity.objects.filter(refetch_taken_until=None).count() == 3


@pytest.mark.usefixtures("ctrl_c")
def test_a_run_that_is_stopped_begins_nothing_more(service: HostileService) -> None:
    """Ctrl-C while a handler runs: neither the purge nor a re-fetch begins."""
    due = make_identity(make_user("due"), subject="subject-1", refetch_due_at=timezone.now() - HOUR)
    make_grant(due)
    make_event(due, "kyc.verified", next_attempt_at=timezone.now() - HOUR)
    on_event("kyc.verified", name="stopped")(lambda event: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(CommandError, match="Stopped") as stopped:
            call_command("identity_upkeep")
    finally:
        forget("stopped")
    assert stopped.value.returncode == 130
    assert Job.PURGE not in upkeep.last_done()
    assert service.calls("claims") == 0


def test_a_service_that_is_away_is_an_exit_code(service: HostileService) -> None:
    """So that cron's mail says so."""
    make_grant(make_identity(make_user("due"), refetch_due_at=timezone.now() - HOUR))
    for _ in range(12):  # so many that the pause outlasts a slow machine
        budget.note(conf.application(), "claims", ServiceUnavailable())
    with pytest.raises(CommandError, match="takes no calls"):
        call_command("identity_upkeep")


def test_a_key_set_that_is_away_is_an_exit_code(service: HostileService) -> None:
    """No claim can be verified, so nothing was re-fetched."""
    make_grant(make_identity(make_user("due"), refetch_due_at=timezone.now() - HOUR))
    service.answers["jwks"] = html("500 Oops")
    with pytest.raises(CommandError, match="Nothing could be re-fetched"):
        call_command("identity_upkeep")
