"""Publish Celery tasks by name, after the commit.

One thread of each process publishes, so a broker that is down or does not answer never delays a
response. If publishing fails, the failure is logged, and the sweep finds the work in the database.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from django_identity import database
from django_identity.telemetry import Carrier, carried

if TYPE_CHECKING:
    from celery import Celery

LONGEST_QUEUE = 10_000
WITHOUT_SOCKET = ("filesystem", "memory")
SOCKET_TIMEOUTS = ("socket_timeout", "read_timeout")

logger = logging.getLogger("django_identity.background")


class TaskName(StrEnum):
    """The names of the tasks in ``tasks.py``."""

    SWEEP = "django_identity.sweep"
    REFETCH_ONE = "django_identity.refetch_one"
    REFETCH_CHUNK = "django_identity.refetch_chunk"
    KEEP_ALIVE = "django_identity.keep_alive"
    RUN_EVENT_HANDLERS = "django_identity.run_event_handlers"
    RETRY_PENDING = "django_identity.retry_pending"
    PURGE = "django_identity.purge"


#: Published in bulk, so they have a queue of their own: urgent tasks do not wait behind them.
BULK = frozenset({TaskName.REFETCH_CHUNK})


@dataclass(frozen=True, slots=True)
class _Work:
    task: TaskName
    arguments: tuple[object, ...]
    #: The trace of the request that publishes, which the task continues.
    headers: Carrier = field(default_factory=carried)


@dataclass(slots=True)
class _Publisher:
    """The site's Celery app, and the queue of the thread that publishes in this process."""

    app: Celery | None = None
    waiting: queue.Queue[_Work] = field(default_factory=lambda: queue.Queue(LONGEST_QUEUE))
    process: int = 0
    starting: threading.Lock = field(default_factory=threading.Lock)


_publisher = _Publisher()


def remember_app() -> None:
    """Store the site's Celery app, because Celery knows it only in the thread that imported it.

    A site that uses Celery has imported it by now. Another one need not load it.
    """
    celery = sys.modules.get("celery.app")
    _publisher.app = celery.app_or_default() if celery else None


def has_broker() -> bool:
    """Whether the site has configured a broker. Without a broker the sweep does all the work."""
    return _publisher.app is not None and bool(_publisher.app.conf.broker_url)


def upkeep_queue(app: Celery) -> str:
    """The queue of the tasks in bulk. Sites that share a broker differ in their default queue."""
    return f"{app.conf.task_default_queue}.identity_upkeep"


def has_broker_timeout() -> bool:
    """Whether connections to the broker have a time-out. Transports without sockets need none."""
    if _publisher.app is None:
        return True
    scheme = str(_publisher.app.conf.broker_url).partition(":")[0]
    if scheme in WITHOUT_SOCKET:
        return True
    options = _publisher.app.conf.broker_transport_options or {}
    return any(options.get(name) for name in SOCKET_TIMEOUTS)


def ask_broker() -> None:
    """Connect to the broker. Raises the transport's own errors; a silent one may block."""
    if _publisher.app is not None:
        with _publisher.app.connection_for_write() as connection:
            connection.connect()


def enqueue_on_commit(task: TaskName, *arguments: object) -> None:
    """Publish ``task`` with ``arguments`` (only ids) when the transaction has committed."""
    # Not a partial: Django logs the function's name if the function raises, and a partial has none.
    database.on_commit(lambda: _enqueue(_Work(task, arguments)))


def publish_now(task: TaskName, *arguments: object) -> None:
    """Publish at once. For workers, which may wait for the broker. Raises the broker's errors."""
    _publish(_Work(task, arguments))


def _enqueue(work: _Work) -> None:
    if not has_broker():
        return
    _ensure_thread()
    try:
        _publisher.waiting.put_nowait(work)
    except queue.Full:
        logger.warning("%s is left to the sweep: the broker takes nothing", work.task)


def _ensure_thread() -> None:
    """Start this process's thread when it is first needed, because a fork copies no threads."""
    if _publisher.process == os.getpid():
        return
    with _publisher.starting:
        if _publisher.process == os.getpid():
            return
        _publisher.waiting = queue.Queue(LONGEST_QUEUE)
        _publisher.process = os.getpid()
        threading.Thread(target=_run, name="django-identity-publisher", daemon=True).start()


def _run() -> None:
    while True:
        work = _publisher.waiting.get()
        try:
            _publish(work)
        except Exception as error:  # noqa: BLE001  any transport's own errors; the sweep finds it
            logger.warning("%s is left to the sweep (%s)", work.task, type(error).__name__)


def _publish(work: _Work) -> None:
    app = _publisher.app
    if app is None or not has_broker():
        return
    app.send_task(
        work.task,
        args=work.arguments,
        headers=work.headers,
        retry=False,
        retry_policy={"max_retries": 0},
        queue=_queue_for(app, work.task),
    )


def _queue_for(app: Celery, task: TaskName) -> str | None:
    """The queue of a task in bulk, unless the site routes the task itself. None: the default."""
    if task not in BULK:
        return None
    # A site's route may name an exchange or a priority, and no queue.
    name, routed = upkeep_queue(app), app.amqp.router.route({}, task).get("queue")
    can_be_used = app.conf.task_create_missing_queues or name in app.amqp.queues
    is_default = routed is not None and routed.name == app.conf.task_default_queue
    return name if is_default and can_be_used else None
