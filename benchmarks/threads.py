"""Re-fetches in two minutes by one worker of 8 and of 24 threads; on PostgreSQL and a broker.

The service takes 0.3 seconds for a call, a re-fetch is two calls, and 6,000 are due and allowed.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.test import override_settings

from benchmarks.harness import Figures, fresh_database
from django_identity import background
from django_identity.lifecycle.minute import upkeep
from django_identity.models import LinkedIdentity
from tests import concurrency
from tests.integration.backlog import make_backlog
from tests.integration.counting_service import CountingService, setting
from tests.integration.workers import Workers
from tests.lifecycle.conftest import celery_app

DELAY = 0.3
DUE = 6_000
MINUTES = 2
QUEUE = f"identity-benchmark-{os.getpid()}"


def run() -> Figures:
    if "CELERY_BROKER_URL" not in os.environ:
        raise SystemExit("set CELERY_BROKER_URL")
    few, many = stored_by(8), stored_by(24)
    return {
        "stored_by_8_threads": few,
        "stored_by_24_threads": many,
        "ratio_24_to_8": many / few,
    }


def stored_by(threads: int) -> float:
    """As beat would have it: a minute's messages, twice."""
    service = CountingService(delay=DELAY)
    ours = setting(service.origin, REFETCHES_PER_MINUTE=DUE)
    broker_url = os.environ["CELERY_BROKER_URL"]
    pool = ("--pool", "threads", "--concurrency", str(threads))
    with (
        fresh_database(),
        closing(service),
        override_settings(DJANGO_IDENTITY=ours),
        tempfile.TemporaryDirectory() as folder,
    ):
        make_backlog(DUE)
        environment = {**concurrency.shared(), "WORKER_QUEUE": QUEUE}
        workers = Workers(environment, Path(folder) / "log", size=1, pool=pool)
        workers.start()
        try:
            with published_to(broker_url):
                warm_up(service)
                for _ in range(MINUTES):
                    upkeep.run_with_workers()
                    time.sleep(60)
            return float(
                LinkedIdentity.objects.exclude(credential_issued_at=None).count(),
            )
        finally:
            workers.end()


@contextmanager
def published_to(broker_url: str) -> Iterator[None]:
    with celery_app(broker_url) as app:
        app.conf.task_default_queue = QUEUE
        try:
            yield
        finally:
            with app.connection_for_write() as broker:
                broker.default_channel.queue_delete(QUEUE)


def warm_up(service: CountingService) -> None:
    """Until the worker takes messages."""
    background.publish(background.TaskName.REFETCH_DUE, [(1,)])
    while not service.seen:
        time.sleep(0.1)
