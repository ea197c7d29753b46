"""Workers are killed at random moments, and no refresh token, row or identity pays for it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from django_identity.lifecycle.upkeep import jobs
from django_identity.models import LinkedIdentity, TokenGrant
from tests.records import make_grant, make_identity, make_user
from tests.servers.stand_in import StandIn
from tests.servers.story import Story
from tests.servers.workers import PATIENCE, Workers

pytestmark = [
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "DATABASE_URL" not in os.environ,
        reason="four processes at a time write without a pause: not on SQLite",
    ),
]

IDENTITIES = 150
# One leg, with PostgreSQL and Redis, kills more; the other has MariaDB and RabbitMQ.
KILLS = {"postgresql": 50}
FEWER_KILLS = 20
KILLS_IN_A_ROUND = 17
KILLING_SECONDS = 120.0


def make_due_identities() -> None:
    for number in range(IDENTITIES):
        subject = f"subject-{number}"
        identity = make_identity(make_user(f"user-{number}"), subject=subject)
        make_grant(
            identity,
            access_token=f"at-0-{subject}",
            refresh_token=f"rt-0-{subject}",
        )


def fall_due(story: Story) -> None:
    """What is done is due once more, its access token too old."""
    now = timezone.now()
    idle = LinkedIdentity.objects.filter(Q(refetch_due_at=None) | Q(refetch_due_at__gt=now))
    for pk, subject in list(idle.values_list("pk", "subject")):
        story.due_since[subject].append(time.monotonic())
        TokenGrant.objects.filter(identity_id=pk).update(access_expires_at=now)
        LinkedIdentity.objects.filter(pk=pk).update(refetch_due_at=now, refetch_failures=0)


def ten_minutes_pass() -> None:
    """Nobody is at work now, so every lease belongs to the dead; it runs out.

    A row that lost three workers waits longer, as one should that kills them; here chance did.
    """
    longest = timedelta(minutes=10)
    taken, leased = F("refetch_taken_until") - longest, F("lease_until") - longest
    LinkedIdentity.objects.exclude(refetch_taken_until=None).update(refetch_taken_until=taken)
    TokenGrant.objects.exclude(lease_until=None).update(lease_until=leased, retry_at=None)
    a_pause_passes()


def a_pause_passes() -> None:
    """Of rows that are set aside; one that is due already may be in a worker's hands."""
    now = timezone.now()
    aside = LinkedIdentity.objects.filter(last_error="worker_lost", refetch_due_at__gt=now)
    aside.update(refetch_due_at=now)


def lose_three_workers(story: Story) -> None:
    """What chance does to a row in some runs is done to one in each."""
    pk, subject = LinkedIdentity.objects.values_list("pk", "subject").earliest("pk")
    now = timezone.now()
    story.due_since[subject].append(time.monotonic())
    LinkedIdentity.objects.filter(pk=pk).update(
        refetch_due_at=now, refetch_taken_until=now, refetch_started=True, refetch_failures=3
    )


def wait(holds: Callable[[], bool], story: Story) -> None:
    """Until ``holds``, for as long as the workers live and call; a busy machine makes them slow."""
    calls, give_up_at = -1, 0.0
    while not holds():
        if calls < len(story.service.seen):
            calls, give_up_at = len(story.service.seen), time.monotonic() + PATIENCE
        assert story.workers.are_alive(), story.evidence()
        assert time.monotonic() < give_up_at, story.evidence()
        time.sleep(0.1)


def kill_while_they_work(story: Story) -> float:
    """A round's kills, spread by chance over the time in which there is work; its seconds."""
    calls = len(story.service.seen)
    wait(lambda: len(story.service.seen) > calls, story)
    began = time.monotonic()
    kills = 0
    while kills < KILLS_IN_A_ROUND and jobs.count_due():
        time.sleep(random.uniform(0.05, 0.3))
        kills += story.workers.kill_a_process()
        assert time.monotonic() < began + KILLING_SECONDS, story.evidence()
    story.workers.kill_a_worker()
    return time.monotonic() - began


def is_done() -> bool:
    a_pause_passes()
    jobs.sweep()
    set_aside = LinkedIdentity.objects.filter(last_error="worker_lost")
    return jobs.count_due() == 0 and not set_aside.exists()


def test_killed_workers_spend_no_token_twice_and_leave_nobody_behind(
    service: StandIn, workers: Workers
) -> None:
    """A token or row is used again only after the process that had it was killed."""
    make_due_identities()
    kills = KILLS.get(connection.vendor, FEWER_KILLS)
    story = Story(service, workers)
    killing = 0.0
    while len(workers.killed) < kills:
        fall_due(story)
        workers.start()
        jobs.sweep()
        killing += kill_while_they_work(story)
        workers.stop()
        ten_minutes_pass()
        assert killing < KILLING_SECONDS, story.evidence()
    lose_three_workers(story)
    workers.start()
    wait(is_done, story)
    workers.stop()
    assert len(workers.killed) >= kills
    assert story.spent_twice() == [], story.evidence()
    assert story.read_twice() == [], story.evidence()
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists(), story.evidence()
    assert not LinkedIdentity.objects.filter(last_error__gt="").exists(), story.evidence()
    assert [call for call in service.seen if call.endpoint == "claims"]
