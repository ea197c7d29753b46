"""Tasks are thin: one verb, and no harm from being lost, late or repeated."""

import json
import subprocess
import sys
from datetime import timedelta
from typing import get_type_hints

import pytest
from celery import Celery
from django.utils import timezone

from django_identity import tasks
from django_identity.background import TaskName
from django_identity.handlers import on_event
from django_identity.lifecycle.ground import attempts
from django_identity.lifecycle.minute import upkeep
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.schedule import beat_schedule
from tests.deliveries import deliver
from tests.lifecycle.conftest import celery_app
from tests.lifecycle.refetches import make_due

pytestmark = pytest.mark.django_db(transaction=True)

OURS = [name.value for name in TaskName]


@pytest.mark.parametrize("name", OURS)
def test_a_killed_worker_gives_its_task_back(name):
    """Acknowledged when done, rejected when the process is lost, and ended when it hangs.

    A task without a soft limit would get the site's, whose exception could come between a refresh's
    answer and storing it.
    """
    task = Celery("options", set_as_current=False).tasks[name]
    assert task.acks_late is True
    assert task.reject_on_worker_lost is True
    assert task.ignore_result is True
    assert task.soft_time_limit == task.time_limit
    assert (
        upkeep.LONGEST_RUN + 60 < task.time_limit <= attempts.HIDDEN_FOR.total_seconds()
    )


def test_messages_say_nothing_about_a_person():
    """A number of rows, or the key of an event or an identity, under a frozen name."""
    app = Celery("arguments", set_as_current=False)
    assert {name for name in app.tasks if "django_identity" in name} == {*OURS}
    hints = {name: get_type_hints(app.tasks[name].run) for name in OURS}
    assert hints == {
        "django_identity.upkeep": {"return": type(None)},
        "django_identity.refetch_due": {
            "most": int,
            "only": int | None,
            "return": type(None),
        },
        "django_identity.run_handlers": {"event_id": int, "return": type(None)},
    }


def test_the_schedule_is_one_line_in_the_settings():
    """``beat_schedule()`` can be asked for where there are no models yet; ticks expire."""
    code = (
        "import json; from django_identity.schedule import beat_schedule;"
        "print(json.dumps(beat_schedule()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(said) == {
        "django_identity.upkeep": {
            "task": "django_identity.upkeep",
            "schedule": 60.0,
            "options": {"expires": 60.0},
        },
    }
    [often] = beat_schedule(every=2.0).values()

    assert often["schedule"] == 2.0
    assert often["options"] == {"expires": 2.0}


@pytest.mark.parametrize(
    "event_type",
    ["kyc.verified", "consent.revoked", "wallet.opened"],
)
@pytest.mark.parametrize("broker_url", ["", "amqp://127.0.0.1:9//"])
def test_without_a_worker_in_development(service, handled, broker_url, event_type):
    """``CELERY_TASK_ALWAYS_EAGER``: handlers run after the commit, and no broker is asked.

    An event whose handler fails is acknowledged and tried again, as with a worker, and a tick of
    upkeep re-fetches what is due.
    """
    make_due(1, scopes=["kyc:read"])
    handled(event_type)
    on_event(event_type, name="of a failure")(lambda event: event.no_such_thing)
    with celery_app(broker_url) as app:
        app.conf.update(task_always_eager=True, task_eager_propagates=True)
        deliver(event_type, subject="subject-1")
        upkeep.run_with_workers()
    event = WebhookEvent.objects.get()
    assert event.handled_by == ["of a test"]
    assert event.error == "AttributeError"
    # Re-fetched, and not just in a worker's hands, which is five minutes.
    later = timezone.now() + timedelta(hours=1)
    is_fresh = LinkedIdentity.objects.filter(refetch_due_at__gt=later).exists()
    assert event_type == "consent.revoked" or is_fresh


def test_a_task_that_comes_twice_works_once(service):
    """A repeated delivery of any task is quiet and makes no second call."""
    make_due(1)
    for _ in range(2):
        tasks.refetch_due.run(200)
        tasks.run_handlers.run(999_999)
        tasks.upkeep.run()
    assert service.calls("claims") == 1
