"""A service for many subjects, and real workers that call it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from tests import concurrency
from tests.deliveries import SECRET
from tests.fake_service import FakeService
from tests.integration.counting_service import CountingService, setting
from tests.integration.workers import Workers
from tests.lifecycle.conftest import celery_app

ANSWERS_AFTER = 0.04


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    """The service, from which the site takes events too."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    return service


@pytest.fixture
def counting_service() -> Iterator[CountingService]:
    running = CountingService(delay=ANSWERS_AFTER)
    with override_settings(DJANGO_IDENTITY=setting(running.origin)):
        yield running
    running.close()


@pytest.fixture
def workers(counting_service: CountingService, tmp_path: Path) -> Iterator[Workers]:
    queue, broker_url = f"identity-tests-{os.getpid()}", os.environ["CELERY_BROKER_URL"]
    held = Workers(
        {**concurrency.shared(), "WORKER_QUEUE": queue},
        tmp_path / "workers.log",
    )
    with celery_app(broker_url) as app:
        app.conf.task_default_queue = queue
        try:
            yield held
        finally:
            held.end()
            with app.connection_for_write() as broker:
                broker.default_channel.queue_delete(queue)
