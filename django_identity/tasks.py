"""Celery tasks: each takes ids, calls one verb, and may be lost, late or repeated without harm.

The truth is in the database: a row is due until its work is done, and leased while somebody is at
it. ``beat_schedule()`` is the site's schedule.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from celery import shared_task
from django.utils.functional import SimpleLazyObject

from django_identity.background import TaskName

if TYPE_CHECKING:
    from django_identity.lifecycle import erasure, upkeep
else:
    # A site asks for the schedule in its settings or celery.py, where there are no models yet.
    erasure, upkeep = (
        SimpleLazyObject(partial(import_module, f"django_identity.lifecycle.{name}"))
        for name in ("erasure", "upkeep")
    )

# The end of a worker that hangs; work that goes on ends by itself well before. The soft limit is
# the same, which is none: a task that names none gets the site's, and its exception could come
# between a refresh's answer and storing it.
TIME_LIMIT = 600
MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR

OPTIONS: dict[str, Any] = {
    # Acknowledged when done; a worker that is killed gives its task back.
    "acks_late": True,
    "reject_on_worker_lost": True,
    "ignore_result": True,
    "time_limit": TIME_LIMIT,
    "soft_time_limit": TIME_LIMIT,
}


@shared_task(name=TaskName.SWEEP.value, **OPTIONS)
def sweep() -> None:
    """Hand out what is due."""
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
    """Refresh grants that would run out unused."""
    upkeep.keep_alive()


@shared_task(name=TaskName.RUN_EVENT_HANDLERS.value, **OPTIONS)
def run_event_handlers(event_id: int) -> None:
    """Do what is left to do for one stored event."""
    upkeep.run_handlers(event_id)


@shared_task(name=TaskName.RETRY_PENDING.value, **OPTIONS)
def retry_pending() -> None:
    """Erasures and event handlers that were not done yet."""
    upkeep.retry_pending()


@shared_task(name=TaskName.PURGE.value, **OPTIONS)
def purge() -> None:
    """Take away what is older than the settings let it be kept."""
    erasure.purge()


def beat_schedule(*, sweep_every: float = MINUTE) -> dict[str, dict[str, Any]]:
    """The entries for Celery's beat: ``CELERY_BEAT_SCHEDULE = beat_schedule()`` in the settings.

    ``sweep_every``: seconds. A tick that no worker took before the next one is dropped.
    """
    return {
        task.value: {
            "task": task.value,
            "schedule": every,
            "options": {"expires": every},
        }
        for task, every in (
            (TaskName.SWEEP, sweep_every),
            (TaskName.RETRY_PENDING, MINUTE),
            (TaskName.KEEP_ALIVE, HOUR),
            (TaskName.PURGE, DAY),
        )
    }
