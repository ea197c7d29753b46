"""Tasks are thin: ids in, one verb, and no harm from being lost, late or repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from inspect import signature
from typing import Any, get_type_hints

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import setup_logging
from django.utils import timezone

from django_identity import tasks
from django_identity.background import TaskName, enqueue_on_commit
from django_identity.lifecycle.upkeep import jobs
from django_identity.models import LinkedIdentity
from django_identity.schedule import beat_schedule
from tests.hostile import HostileService
from tests.lifecycle.conftest import celery_app
from tests.records import make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

OURS = [name.value for name in TaskName]


def due(subject: str) -> LinkedIdentity:
    past = timezone.now() - timedelta(minutes=1)
    identity = make_identity(make_user(subject), subject=subject, refetch_due_at=past)
    make_grant(identity)
    return identity


def until(holds: Callable[[], bool]) -> bool:
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        if holds():
            return True
        time.sleep(0.05)
    return False


def is_fresh() -> bool:
    return LinkedIdentity.objects.filter(refetch_due_at__gt=timezone.now()).exists()


@pytest.fixture
def _own_logging() -> Iterator[None]:
    """A worker would keep the process's log for itself, and no later test could read it."""

    def leave_it(**_given: Any) -> None:
        """Celery sets nothing up where somebody listens."""

    setup_logging.connect(leave_it)
    yield
    setup_logging.disconnect(leave_it)


@pytest.fixture
def worker(service: HostileService, _own_logging: None) -> Any:
    """A worker of Celery's own, in a thread, on a broker in memory."""
    with celery_app("memory://") as app:
        app.conf.result_backend = "cache+memory://"
        # How often the broker in memory looks for a message, and so how soon the worker ends.
        app.conf.broker_transport_options = {"polling_interval": 0.02}
        app.loader.import_task_module("django_identity.tasks")
        with start_worker(app, pool="solo", perform_ping_check=False):
            yield app


def test_every_name_is_a_task() -> None:
    """What other rooms hand work to exists under its frozen name."""
    app = Celery("names", set_as_current=False)
    registered = {name for name in app.tasks if name.startswith("django_identity.")}
    assert registered == set(OURS)


@pytest.mark.parametrize("name", OURS)
def test_a_killed_worker_gives_its_task_back(name: str) -> None:
    """Acknowledged when done, rejected when the process is lost, and ended when it hangs."""
    task = Celery("options", set_as_current=False).tasks[name]
    assert (task.acks_late, task.reject_on_worker_lost, task.ignore_result) == (True, True, True)
    assert jobs.LONGEST_WORK + 60 < task.time_limit <= 600


@pytest.mark.parametrize("name", OURS)
def test_a_sites_soft_limit_is_not_ours(name: str) -> None:
    """Its exception could come between a refresh's answer and storing it.

    A task without one gets the site's. A longer one than the hard limit would put that off.
    """
    task = Celery("options", set_as_current=False).tasks[name]
    assert task.soft_time_limit == task.time_limit


@pytest.mark.parametrize("name", OURS)
def test_arguments_are_ids_and_nothing_else(name: str) -> None:
    """What waits in a broker says nothing about a person and holds no token."""
    task = Celery("arguments", set_as_current=False).tasks[name]
    hints = get_type_hints(task.run)
    assert hints.pop("return") is type(None)
    assert all(hint in (int, list[int]) for hint in hints.values())
    assert len(hints) == len(signature(task.run).parameters)


def test_the_schedule_is_one_line_in_the_settings() -> None:
    """``beat_schedule()`` can be asked for where there are no models yet; ticks expire."""
    code = (
        "import json; from django_identity.schedule import beat_schedule;"
        "print(json.dumps(beat_schedule()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    schedule = json.loads(said)
    assert schedule == beat_schedule()
    assert {name: entry["schedule"] for name, entry in schedule.items()} == {
        "django_identity.sweep": 60.0,
        "django_identity.retry_pending": 60.0,
        "django_identity.keep_alive": 3600.0,
        "django_identity.purge": 3600.0,
    }
    for name, entry in schedule.items():
        assert entry["task"] == name
        assert entry["options"]["expires"] == entry["schedule"]


def test_a_site_may_sweep_more_often() -> None:
    """The other tasks keep their times."""
    often, usual = beat_schedule(sweep_every=2.0), beat_schedule()
    assert often.pop("django_identity.sweep") == {
        "task": "django_identity.sweep",
        "schedule": 2.0,
        "options": {"expires": 2.0},
    }
    del usual["django_identity.sweep"]
    assert often == usual


def test_a_worker_keeps_claims_fresh(service: HostileService, worker: Celery) -> None:
    """A tick of the sweep becomes a chunk and a re-fetch; what is handed over waits for no tick."""
    identity = due("subject-1")
    worker.send_task(TaskName.SWEEP)
    assert until(is_fresh)
    assert service.calls("claims") == 1
    LinkedIdentity.objects.update(refetch_due_at=timezone.now())
    enqueue_on_commit(TaskName.REFETCH_ONE, identity.pk)
    assert until(is_fresh)
    assert service.calls("claims") == 2


def test_a_task_that_comes_twice_works_once(service: HostileService) -> None:
    """A repeated delivery of any task is quiet and makes no second call."""
    identity = due("subject-1")
    for _ in range(2):
        tasks.refetch_chunk.run([identity.pk, 999_999])
        tasks.refetch_one.run(identity.pk)
        tasks.keep_alive.run()
        tasks.run_event_handlers.run(999_999)
        tasks.retry_pending.run()
        tasks.purge.run()
    assert service.calls("claims") == 1
