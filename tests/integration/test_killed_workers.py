"""Workers are killed at random moments, and no refresh token, row or identity pays for it."""

import os
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db.models import F, Q
from django.utils import timezone

from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity, TokenGrant
from tests.integration.backlog import make_backlog
from tests.integration.counting_service import CountingService, Seen
from tests.integration.workers import PATIENCE, Workers

pytestmark = [
    pytest.mark.race,
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "DATABASE_URL" not in os.environ,
        reason="four processes at a time write without a pause: not on SQLite",
    ),
]

IDENTITIES = 600
KILLS = 14
LEAST_KILLS = 10
KILLS_OF_A_WORKER = 3
MOST_ROUNDS = 8
# Without a call for so long, nobody works any more.
QUIET = 3.0
MOST_SHOWN = 10
GRANT = ("grant__lease_until", "grant__retry_at", "grant__generation")


@dataclass(frozen=True)
class Story:
    """What happened while workers were killed."""

    service: CountingService
    workers: Workers

    def spent_twice(self) -> list[tuple[Seen, Seen]]:
        """Refresh tokens that were presented again although whoever had one was not killed."""
        calls = [call for call in self.service.seen if call.endpoint == "token"]
        calls.sort(
            key=lambda call: call.about
        )  # those of one token stay in their order
        killed = self.workers.killed
        return [
            (first, second)
            for first, second in pairwise(calls)
            if first.about == second.about
            and killed.get(first.process, second.at) >= second.at
        ]

    def evidence(self) -> str:
        """For the message of an assertion. Its tokens are a number and a name."""
        is_left = ~Q(last_error="") | Q(refetch_due_at__lte=timezone.now())
        rows = LinkedIdentity.objects.filter(is_left).values(
            "subject", "last_error", *GRANT
        )
        return (
            f"{self.workers.killed} were killed, {self.spent_twice()[:MOST_SHOWN]} spent twice, "
            f"{rows[:MOST_SHOWN]} left; the end of the workers' log: {self.workers.log_end()}"
        )


def ten_minutes_pass() -> None:
    """Nobody is at work now, so every lease and hidden row is of the dead, or waits for a try."""
    span = timedelta(minutes=10)
    waiting = LinkedIdentity.objects.filter(credential_issued_at=None)
    waiting.update(refetch_due_at=F("refetch_due_at") - span)
    TokenGrant.objects.exclude(lease_until=None).update(
        lease_until=F("lease_until") - span
    )
    TokenGrant.objects.exclude(retry_at=None).update(retry_at=None)


def kill_while_they_work(story: Story) -> None:
    """All kills, spread by chance over the time in which there is work."""
    workers, calls = story.workers, story.service.seen
    while len(workers.killed) < KILLS and due.count():
        before = len(calls)
        time.sleep(random.uniform(0.2, 0.6))
        if len(calls) == before:
            workers.start()
            upkeep.run_with_workers()
        elif len(workers.killed) % (KILLS // KILLS_OF_A_WORKER) == 1:
            workers.kill_a_worker()
            workers.start()
        else:
            workers.kill_a_process()


def wait_until_quiet(story: Story) -> None:
    """Until nothing is due and nobody calls; a busy machine makes workers slow."""
    calls = -1
    since = began = time.monotonic()
    while due.count() or time.monotonic() < since + QUIET:
        # Celery ends a worker whose process was killed while it started: another takes its place.
        story.workers.start()
        assert time.monotonic() < began + PATIENCE, story.evidence()
        if calls < len(story.service.seen):
            calls = len(story.service.seen)
            since = began = time.monotonic()
        elif time.monotonic() > since + 2 * QUIET:
            upkeep.run_with_workers()
            since = time.monotonic()
        time.sleep(0.2)


def test_killed_workers_spend_no_token_twice_and_leave_nobody_behind(
    counting_service, workers
):
    """A refresh token is sent again only after the process that had sent it was killed."""
    make_backlog(IDENTITIES)
    story = Story(counting_service, workers)
    workers.start()
    upkeep.run_with_workers()
    kill_while_they_work(story)
    for _ in range(MOST_ROUNDS):
        workers.start()
        upkeep.run_with_workers()
        wait_until_quiet(story)
        workers.stop()
        if not LinkedIdentity.objects.filter(credential_issued_at=None).exists():
            break
        ten_minutes_pass()
    assert len(workers.killed) >= LEAST_KILLS
    assert story.spent_twice() == [], story.evidence()
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists(), (
        story.evidence()
    )
    stored = LinkedIdentity.objects.exclude(credential_issued_at=None)
    assert (
        stored.filter(last_error="", refetch_due_at__gt=timezone.now()).count()
        == IDENTITIES
    )
