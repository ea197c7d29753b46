"""The schedule of the tasks. A site's settings may import it before the models are loaded."""

from typing import Any

from django_identity.background import TaskName

MINUTE = 60.0
HOUR = 3600.0


def beat_schedule(*, sweep_every: float = MINUTE) -> dict[str, dict[str, Any]]:
    """The entries for Celery's beat: ``CELERY_BEAT_SCHEDULE = beat_schedule()`` in the settings.

    ``sweep_every``: seconds. A message that no worker took before the next one expires.
    """
    return {
        task.value: {"task": task.value, "schedule": every, "options": {"expires": every}}
        for task, every in (
            (TaskName.SWEEP, sweep_every),
            (TaskName.RETRY_PENDING, MINUTE),
            (TaskName.KEEP_ALIVE, HOUR),
            (TaskName.PURGE, HOUR),
        )
    }
