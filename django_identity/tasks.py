"""Celery tasks. They take only ids and are idempotent: messages may be lost, late or repeated.

The state is in the database: a row is due until its work is done, and leased while a worker works
on it. ``schedule.beat_schedule()`` is the schedule for Celery's beat.
"""

import multiprocessing
from ctypes import c_bool
from typing import Any

from celery import Task, shared_task
from celery.signals import worker_init, worker_shutting_down

from django_identity import telemetry
from django_identity.background import TaskName, upkeep_queue
from django_identity.lifecycle import erasure, upkeep

# Stops a worker that hangs; normal work ends well before. An equal soft limit never strikes. With
# none the site's soft limit would apply: its exception could strike between the answer to a refresh
# and the storing of the tokens.
TIME_LIMIT = 600


class TracedTask(Task):  # type: ignore[type-arg]  # not generic when it runs
    """Continues the trace of whoever published the task (OpenTelemetry)."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {name: getattr(self.request, name, None) for name in telemetry.carrier_names()}
        carrier = {name: value for name, value in given.items() if isinstance(value, str)}
        with telemetry.continued(carrier, task=self.name):
            return super().__call__(*args, **kwargs)


OPTIONS: dict[str, Any] = {
    "base": TracedTask,
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


@worker_init.connect
def _consume_upkeep(sender: Any, **_kwargs: object) -> None:
    """A worker that serves the default queue serves that of the tasks in bulk, too."""
    app = sender.app
    queues = app.amqp.queues
    if app.conf.task_default_queue in queues.consume_from and queues.create_missing:
        queues.select([*queues.consume_from, upkeep_queue(app)])


@shared_task(name=TaskName.SWEEP.value, **OPTIONS)
def sweep() -> None:
    """Publish the due identities in chunks."""
    with upkeep.record_run(upkeep.Job.SWEEP):
        upkeep.sweep()
    upkeep.publish_due_jobs()


@shared_task(name=TaskName.REFETCH_CHUNK.value, **OPTIONS)
def refetch_chunk(identity_ids: list[int]) -> None:
    """Re-fetch the claims of these identities."""
    upkeep.refetch_chunk(identity_ids, stop=_is_shutting_down)


@shared_task(name=TaskName.REFETCH_ONE.value, **OPTIONS)
def refetch_one(identity_id: int) -> None:
    """Re-fetch the claims of one identity, at once."""
    upkeep.refetch_one(identity_id)


@shared_task(name=TaskName.KEEP_ALIVE.value, **OPTIONS)
def keep_alive() -> None:
    """Refresh grants that would otherwise expire unused."""
    with upkeep.record_run(upkeep.Job.KEEP_ALIVE):
        upkeep.keep_alive(stop=_is_shutting_down)


@shared_task(name=TaskName.RUN_EVENT_HANDLERS.value, **OPTIONS)
def run_event_handlers(event_id: int) -> None:
    """Run the site's handlers of one stored event."""
    upkeep.run_handlers(event_id)


@shared_task(name=TaskName.RETRY_PENDING.value, **OPTIONS)
def retry_pending() -> None:
    """Retry pending erasures and event handlers."""
    with upkeep.record_run(upkeep.Job.RETRY_PENDING):
        upkeep.retry_pending(stop=_is_shutting_down)


@shared_task(name=TaskName.PURGE.value, **OPTIONS)
def purge() -> None:
    """Delete data that is older than the settings allow."""
    with upkeep.record_run(upkeep.Job.PURGE):
        erasure.purge()
