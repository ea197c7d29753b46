"""The processes of the demo, and its queues: nothing urgent waits behind re-fetches."""

import httpx
import pytest
from celery import Celery

from example_project.celery import BACKLOG, URGENT, app, route
from example_project.demo.processes import HOST, DemoError, free_port, running

SERVES = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
HTTPServer(("127.0.0.1", int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit('no such table: people')", "no such table: people"),
        ("print('starting'); 1 / 0", "ZeroDivisionError"),
        ("import sys; sys.stderr.buffer.write(b'bad \\xff'); sys.exit(3)", "bad"),
        ("", "Nothing answers at"),
    ],
)
def test_a_process_that_ends_at_its_start_says_what_it_said(program, said):
    """The error has the end of its output, beside the address that does not answer."""
    address = f"http://{HOST}:{free_port()}/"
    with (
        pytest.raises(DemoError, match=said) as raised,
        running("-c", program, ready_at=address),
    ):
        pass
    assert f"Nothing answers at {address}" in str(raised.value)


def test_a_process_runs_until_the_block_ends():
    port = free_port()
    address = f"http://{HOST}:{port}/"
    with running("-c", SERVES, str(port), ready_at=address):
        assert httpx.get(address, trust_env=False).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, trust_env=False)


@pytest.mark.parametrize(
    ("task", "arguments", "queue"),
    [
        ("upkeep", (), URGENT),
        ("run_handlers", (7,), URGENT),
        ("refetch_due", (1, 7), URGENT),
        ("refetch_due", (20,), BACKLOG),
        ("refetch_due", (1,), BACKLOG),
    ],
)
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
