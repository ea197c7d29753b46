"""Wake Celery workers by name, after the commit.

The database rows are the truth, so a lost message costs a minute: upkeep finds the work.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django_identity import database
from django_identity.logs import LogEvent, log, log_trouble

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Connection

# A broker that does not answer costs a few seconds. The last two options are AMQP's.
SECONDS = 2
# By then upkeep has found the work.
EXPIRES = 60
TIMEOUTS = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")

TASKS = "django_identity.tasks"
# Celery's settings with which nothing leaves the process.
LOCAL = {
    **dict.fromkeys(("broker_url", "broker_read_url", "broker_write_url"), "memory://"),
    "result_backend": "cache+memory://",
    "task_always_eager": True,
}

_apps: list[Celery] = []


class TaskName(StrEnum):
    """The names of the tasks in ``tasks.py``."""

    UPKEEP = "django_identity.upkeep"
    REFETCH_DUE = "django_identity.refetch_due"
    RUN_HANDLERS = "django_identity.run_handlers"


def remember_app() -> None:
    """Store the site's Celery app, because Celery knows it only in the thread that imported it.

    A site that uses Celery has imported it by now. Other processes may leave it unloaded.
    """
    _apps.clear()
    celery = sys.modules.get("celery.app")
    if celery is not None:
        _apps.append(celery.app_or_default())


def has_broker() -> bool:
    """Whether the site has configured a broker. Without one cron does all the work."""
    return any(app.conf.broker_url for app in _apps)


def is_eager() -> bool:
    """Whether tasks run where they are published, as in development and in a site's tests."""
    return any(app.conf.task_always_eager for app in _apps)


def ask_broker() -> None:
    """Connect to the broker. Raises the transport's own errors."""
    for app in _apps:
        with _connection(app) as connection:
            # ``connect()`` would wait two seconds before it tries again, or tries another host.
            connection.ensure_connection(
                max_retries=1,
                interval_start=0,
                reraise_as_library_errors=False,
            )


def publish(task: TaskName, messages: Sequence[tuple[object, ...]]) -> bool:
    """Publish ``task`` for the arguments of each message: keys and numbers alone.

    Returns False unless a broker took them. It blocks for a few seconds at most. A message expires
    after a minute. If the site's tasks are eager, the task runs here.
    """
    if not messages:
        return True
    if not has_broker() and not is_eager():
        # Right for a site with cron. Else this process does not import the site's Celery app.
        log(LogEvent.BROKER_UNKNOWN, task=task)
        return True
    try:
        for app in _apps:
            if app.conf.task_always_eager:
                _run(app, task, messages)
            elif app.conf.broker_url:
                _send(app, task, messages)
    except Exception as error:  # noqa: BLE001  any transport's own errors
        log_trouble(LogEvent.BROKER_FAILED, error, level=logging.WARNING, task=task)
        return False
    return True


def nudge_on_commit(task: TaskName, *arguments: object) -> None:
    """Publish ``task`` when the transaction has committed. A failure is only logged."""
    database.on_commit(lambda: publish(task, [arguments]))


def _send(app: Celery, task: TaskName, messages: Sequence[tuple[object, ...]]) -> None:
    with _connection(app) as connection:
        once: Any = {"connection": connection, "retry": False, "ignore_result": True}
        for arguments in messages:
            app.send_task(task, arguments, expires=EXPIRES, **once)


def _run(app: Celery, task: TaskName, messages: Sequence[tuple[object, ...]]) -> None:
    # As a worker does when it starts. ``send_task`` would ask a broker even so.
    app.loader.import_task_module(TASKS)
    for arguments in messages:
        app.tasks[task].apply(arguments)


def _connection(app: Celery) -> Connection:
    bounds = {"max_retries": 0, **dict.fromkeys(TIMEOUTS, SECONDS)}
    return app.connection_for_write(connect_timeout=SECONDS, transport_options=bounds)


def run_here() -> None:
    """Run every task where it is published from now on, in all Celery apps, past their brokers."""
    # A site may have imported its app since: with its URLconf.
    remember_app()
    for name in LOCAL:
        # Celery prefers the environment to its settings.
        os.environ.pop(f"CELERY_{name.upper()}", None)
    celery = sys.modules.get("celery._state")
    if celery is not None:
        for app in celery._get_active_apps():  # noqa: SLF001  no other list has all of them
            app.conf.update(LOCAL)
