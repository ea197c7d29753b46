"""Real workers: a clean stop is quick, and nothing urgent waits behind a backlog."""

import os
import time
from collections.abc import Callable

import pytest
from django.utils import timezone

from django_identity import background, conf
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.models import ErasureReceipt, LinkedIdentity
from tests.deliveries import SECRET, event_body, post
from tests.integration.backlog import make_backlog
from tests.integration.counting_service import setting
from tests.integration.workers import PATIENCE, Workers

pytestmark = [
    pytest.mark.race,
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"),
        reason="threads of several processes write at once: on PostgreSQL",
    ),
]

THREADS = ("--pool", "threads", "--concurrency", "8")
BACKLOG = 3000


def wait_until(holds: Callable[[], bool], workers: Workers) -> None:
    began = time.monotonic()
    while not holds():
        assert workers.are_alive(), workers.log_end()
        assert time.monotonic() - began < PATIENCE, workers.log_end()
        time.sleep(0.05)


@pytest.mark.parametrize("pool", [("--pool", "prefork", "--concurrency", "2"), THREADS])
def test_a_clean_stop_leaves_nothing_half_done(counting_service, workers, pool):
    """Long before the minute of a message is over; all other rows are due in five minutes."""
    counting_service.delay, workers.size, workers.pool = 1.0, 1, pool
    make_backlog(80)
    upkeep.run_with_workers()
    workers.start()
    wait_until(lambda: len(counting_service.seen) > 4, workers)
    workers.stop()
    finished = LinkedIdentity.objects.exclude(credential_issued_at=None).count()
    # Four messages, two seconds a row: who does not hear of the end finishes all of them.
    assert 0 < finished < 20
    soon = timezone.now() + due.TAKEN_FOR
    left = LinkedIdentity.objects.filter(refetch_due_at__lte=soon)
    assert left.count() == 80 - finished
    assert len(counting_service.seen) == 2 * finished


def test_an_erasure_does_not_wait_for_a_backlog(counting_service, workers, settings):
    """It waits for the rows of a minute at most, with one worker of eight threads."""
    settings.DJANGO_IDENTITY = setting(
        counting_service.origin, WEBHOOK_SECRETS=[SECRET]
    )
    counting_service.delay, workers.size, workers.pool = 0.02, 1, THREADS
    make_backlog(BACKLOG + 1)
    person = LinkedIdentity.objects.earliest("pk")
    LinkedIdentity.objects.filter(pk=person.pk).update(refetch_due_at=None)
    workers.start()
    background.publish(background.TaskName.UPKEEP, [()])
    wait_until(lambda: due.count() < BACKLOG, workers)
    body = event_body("data.deletion_requested", subject=person.subject)
    assert post(body).status_code == 200
    wait_until(ErasureReceipt.objects.exclude(erased_at=None).exists, workers)
    asked_for = conf.application().refetches_per_minute
    assert LinkedIdentity.objects.exclude(credential_issued_at=None).count() < asked_for
