"""Real workers: a clean stop is quick, and nothing urgent waits behind a backlog."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_identity import conf
from django_identity.background import TaskName, publish_now
from django_identity.lifecycle.events.receipts import open_receipt
from django_identity.lifecycle.upkeep import jobs
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    TokenGrant,
    digest,
)
from tests.records import make_grant, make_identity, make_user, sealed
from tests.servers.stand_in import StandIn
from tests.servers.workers import PATIENCE, Workers

pytestmark = [
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"),
        reason="threads of several processes write at once: on PostgreSQL",
    ),
]

BACKLOG = 4000
MOST_WAIT = 5.0


def make_backlog(size: int) -> None:
    """Identities that are due, with tokens of the stand-in that are too old."""
    now = timezone.now()
    users = User.objects.bulk_create(User(username=f"waiting-{n}") for n in range(size))
    identities = LinkedIdentity.objects.bulk_create(
        LinkedIdentity(
            user=user, application="default", environment="test", subject=user.username,
            subject_digest=digest("default", "test", user.username), consent=Consent.GRANTED,
            consent_changed_at=now, linked_via=LinkedVia.OAUTH, scopes=["claims:read"],
            refetch_due_at=now - timedelta(minutes=1),
        )
        for user in users
    )  # fmt: skip
    TokenGrant.objects.bulk_create(
        TokenGrant(
            identity=identity,
            access_token=sealed(identity, "access_token", f"at-0-{identity.subject}"),
            refresh_token=sealed(identity, "refresh_token", f"rt-0-{identity.subject}"),
            access_expires_at=now,
        )
        for identity in identities
    )


def seconds_until(holds: Callable[[], bool], workers: Workers) -> float:
    began = time.monotonic()
    while not holds():
        assert workers.are_alive(), workers.log_end()
        assert time.monotonic() - began < PATIENCE, workers.log_end()
        time.sleep(0.05)
    return time.monotonic() - began


def test_a_clean_stop_ends_after_the_identity_in_hand(service: StandIn, workers: Workers) -> None:
    """Within ten seconds, however slow the service; the rows that nobody began are free at once."""
    service.delay = 1.0
    make_backlog(jobs.CHUNK * 4)
    jobs.sweep()
    workers.size = 1
    workers.start()
    seconds_until(lambda: len(service.seen) > 4, workers)
    began = time.monotonic()
    workers.stop()
    assert time.monotonic() - began < 10
    assert not LinkedIdentity.objects.filter(refetch_started=True).exists()
    finished = LinkedIdentity.objects.filter(refetch_due_at__gt=timezone.now()).count()
    assert 0 < finished < jobs.CHUNK * 2
    assert LinkedIdentity.objects.filter(refetch_taken_until=None).count() > finished


def test_urgent_work_does_not_wait_behind_a_backlog(service: StandIn, workers: Workers) -> None:
    """A pending erasure is done, and a re-fetch after an event begins, within five seconds."""
    make_backlog(BACKLOG)
    assert jobs.sweep() == BACKLOG
    workers.size = 1
    workers.start()
    seconds_until(lambda: len(service.seen) > 20, workers)
    urgent = make_identity(
        make_user("urgent"), subject="urgent", refetch_due_at=timezone.now(), scopes=["claims:read"]
    )
    make_grant(urgent, access_token="at-0-urgent", refresh_token="rt-0-urgent")
    forgotten = make_identity(make_user("forgotten"), subject="forgotten")
    receipt = open_receipt(
        conf.application(), "forgotten", identity=forgotten, requested_at=timezone.now()
    )
    publish_now(TaskName.REFETCH_ONE, urgent.pk)
    publish_now(TaskName.RETRY_PENDING)
    refetched = seconds_until(lambda: any("urgent" in call.about for call in service.seen), workers)
    erased = seconds_until(
        ErasureReceipt.objects.filter(pk=receipt.pk).exclude(erased_at=None).exists, workers
    )
    assert refetched < MOST_WAIT
    assert erased < MOST_WAIT
    assert jobs.count_due() > BACKLOG / 2
