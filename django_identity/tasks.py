"""Celery tasks. They are idempotent: messages may be lost, late or repeated.

The state is in the database: a row is due until its work is done. A message has a number of rows,
or the key of an event or an identity, and nothing about a person. ``schedule.beat_schedule()`` is
the schedule for Celery's beat.
"""

import multiprocessing
from ctypes import c_bool
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from django_identity.background import TaskName
from django_identity.boundary import boundary
from django_identity.lifecycle.minute import follow_up
from django_identity.lifecycle.minute import upkeep as lifecycle_upkeep

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

# Shared with the processes of the pool, which do not hear of a shutdown.
_shutdown = multiprocessing.RawValue(c_bool, False)


@worker_shutting_down.connect
def _note_shutdown(**_kwargs: object) -> None:
    _shutdown.value = True


def _is_shutting_down() -> bool:
    return bool(_shutdown.value)


@shared_task(name=TaskName.UPKEEP.value, **OPTIONS)
@boundary
def upkeep() -> None:
    """Erasures, event handlers and old data; then messages for the identities that are due."""
    lifecycle_upkeep.run_with_workers(stop=_is_shutting_down)


@shared_task(name=TaskName.REFETCH_DUE.value, **OPTIONS)
@boundary
def refetch_due(most: int, only: int | None = None) -> None:
    """Refresh tokens and re-fetch credentials of due identities.

    ``only``: of the one that an event has just made due.
    """
    lifecycle_upkeep.refetch_for_a_minute(most, only=only, stop=_is_shutting_down)


@shared_task(name=TaskName.RUN_HANDLERS.value, **OPTIONS)
@boundary
def run_handlers(event_id: int) -> None:
    """Run the site's handlers of one stored event, or the erasure that it asks for."""
    follow_up.run_handlers(event_id)
