"""A service for many subjects, and real workers that call it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.test import override_settings

from tests.integration.stand_in import StandIn, setting
from tests.integration.workers import Workers
from tests.lifecycle.conftest import celery_app

ANSWERS_AFTER = 0.04


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    running = StandIn(delay=ANSWERS_AFTER)
    with override_settings(DJANGO_IDENTITY={"default": setting(running.origin)}):
        yield running
    running.close()


@pytest.fixture
def workers(stand_in: StandIn, tmp_path: Path) -> Iterator[Workers]:
    queue, broker_url = f"identity-tests-{os.getpid()}", os.environ["CELERY_BROKER_URL"]
    held = Workers(
        {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": address_of_the_test_database(),
            "CELERY_BROKER_URL": broker_url,
            "STAND_IN": stand_in.origin,
            "WORKER_QUEUE": queue,
        },
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


def address_of_the_test_database() -> str:
    scheme, _, rest = os.environ["DATABASE_URL"].partition("://")
    place, _, named = rest.partition("/")
    _, question_mark, options = named.partition("?")
    return f"{scheme}://{place}/{connection.settings_dict['NAME']}{question_mark}{options}"
