"""Celery tasks. They take only ids and are idempotent: messages may be lost, late or repeated.

The state is in the database: a row is due until its work is done, and leased while a worker works
on it. ``schedule.beat_schedule()`` is the schedule for Celery's beat.
"""

from __future__ import annotations

from typing import Any

from celery import shared_task

from django_identity.background import TaskName
from django_identity.lifecycle import erasure, upkeep

# Stops a worker that hangs; normal work ends well before. An equal soft limit never strikes. With
# none the site's soft limit would apply: its exception could strike between the answer to a refresh
# and the storing of the tokens.
TIME_LIMIT = 600

OPTIONS: dict[str, Any] = {
    # Acknowledge after the work, so that the task of a killed worker returns to the queue.
    "acks_late": True,
    "reject_on_worker_lost": True,
    "ignore_result": True,
    "time_limit": TIME_LIMIT,
    "soft_time_limit": TIME_LIMIT,
}


@shared_task(name=TaskName.SWEEP.value, **OPTIONS)
def sweep() -> None:
    """Publish the due identities in chunks."""
    upkeep.sweep()


@shared_task(name=TaskName.REFETCH_CHUNK.value, **OPTIONS)
def refetch_chunk(identity_ids: list[int]) -> None:
    """Re-fetch the claims of these identities."""
    upkeep.refetch_chunk(identity_ids)


@shared_task(name=TaskName.REFETCH_ONE.value, **OPTIONS)
def refetch_one(identity_id: int) -> None:
    """Re-fetch the claims of one identity, at once."""
    upkeep.refetch_one(identity_id)


@shared_task(name=TaskName.KEEP_ALIVE.value, **OPTIONS)
def keep_alive() -> None:
    """Refresh grants that would otherwise expire unused."""
    upkeep.keep_alive()


@shared_task(name=TaskName.RUN_EVENT_HANDLERS.value, **OPTIONS)
def run_event_handlers(event_id: int) -> None:
    """Run the site's handlers of one stored event."""
    upkeep.run_handlers(event_id)


@shared_task(name=TaskName.RETRY_PENDING.value, **OPTIONS)
def retry_pending() -> None:
    """Retry pending erasures and event handlers."""
    upkeep.retry_pending()


@shared_task(name=TaskName.PURGE.value, **OPTIONS)
def purge() -> None:
    """Delete data that is older than the settings allow."""
    erasure.purge()
