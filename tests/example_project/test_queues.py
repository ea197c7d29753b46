"""The example's route: nothing urgent waits behind a backlog of re-fetches."""

import pytest
from celery import Celery

from example_project.celery import BACKLOG, URGENT, app, route


@pytest.mark.parametrize(
    ("task", "arguments", "queue"),
    [
        ("upkeep", (), URGENT), ("run_handlers", (7,), URGENT),
        ("refetch_due", (1, 7), URGENT), ("refetch_due", (20,), BACKLOG),
        ("refetch_due", (1,), BACKLOG),
    ],
)  # fmt: skip
def test_each_task_has_its_queue(task, arguments, queue):
    routed = app.amqp.router.route({}, f"django_identity.{task}", args=arguments)
    assert routed["queue"].name == queue


def test_the_sites_own_tasks_are_left_alone():
    assert route("circle.send_letters", ()) is None
    assert {queue.name for queue in app.amqp.queues.values()} == {BACKLOG, URGENT}


def test_the_route_is_a_function_that_celery_takes():
    other = Celery("other", broker="memory://")
    other.conf.task_routes = (route,)
    routed = other.amqp.router.route({}, "django_identity.upkeep")
    assert routed["queue"].name == URGENT
