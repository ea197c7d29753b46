"""The schedule of the tasks. A site's settings may import it before the models are loaded."""

from typing import Any

from django_identity.background import TaskName


def beat_schedule(*, every: float = 60.0) -> dict[str, dict[str, Any]]:
    """The entry for Celery's beat: ``CELERY_BEAT_SCHEDULE = beat_schedule()`` in the settings.

    ``every``: seconds. A message expires when the next one is due.
    """
    name = TaskName.UPKEEP.value
    return {name: {"task": name, "schedule": every, "options": {"expires": every}}}
