"""The site's Celery app. ``celery -A example_project worker -B`` runs a worker with its beat."""

from __future__ import annotations

import os
from collections.abc import Sequence

from celery import Celery
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

BACKLOG = "celery"
URGENT = "identity_urgent"


def route(
    name: str,
    args: Sequence[object],
    *_more: object,
    **_about: object,
) -> str | None:
    """Upkeep, handlers, erasures and the re-fetch of one person wait behind no backlog."""
    is_of_many = name == "django_identity.refetch_due" and len(args) == 1
    if name.startswith("django_identity.") and not is_of_many:
        return URGENT
    return None


app = Celery("example_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_routes = (route,)
# A worker without ``-Q`` serves both, in turn.
app.conf.task_queues = (Queue(BACKLOG), Queue(URGENT))
app.conf.worker_prefetch_multiplier = 1
app.autodiscover_tasks()
