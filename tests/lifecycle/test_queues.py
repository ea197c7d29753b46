"""Which queue a task goes to: tasks in bulk have one of their own, and the site's routes win."""

from __future__ import annotations

from typing import Any

import pytest

from django_identity import background
from django_identity.background import TaskName
from tests.lifecycle.conftest import celery_app

DEFAULT, UPKEEP = "celery", "celery.identity_upkeep"


def queues_of(task: TaskName, **conf: Any) -> list[str]:
    """The queues in which a message of ``task`` arrives."""
    with celery_app("memory://") as app, app.connection_for_read() as connection:
        app.conf.update(conf)
        queues = {name: connection.SimpleQueue(name) for name in (DEFAULT, UPKEEP, "own")}
        for queue in queues.values():
            queue.clear()
        background.publish_now(task, 1)
        found = [name for name, queue in queues.items() if queue.qsize()]
        for queue in queues.values():
            queue.clear()
        return found


@pytest.mark.parametrize("task", list(TaskName))
def test_only_chunks_leave_the_default_queue(task: TaskName) -> None:
    """What is urgent does not wait behind them."""
    assert queues_of(task) == [UPKEEP if task is TaskName.REFETCH_CHUNK else DEFAULT]


@pytest.mark.parametrize(
    ("route", "queue"),
    [
        ({"queue": "own"}, "own"),
        ({"priority": 3}, DEFAULT),
        ({"exchange": "own", "routing_key": "own"}, "own"),
    ],
    ids=["queue", "priority", "routing key"],
)
def test_the_sites_route_wins(route: dict[str, Any], queue: str) -> None:
    """A route need not name a queue."""
    routes = {"django_identity.*": route}
    assert queues_of(TaskName.REFETCH_CHUNK, task_routes=routes) == [queue]


def test_a_queue_that_may_not_be_made_is_not_used() -> None:
    """Chunks go to the default queue then."""
    assert queues_of(TaskName.REFETCH_CHUNK, task_create_missing_queues=False) == [DEFAULT]
