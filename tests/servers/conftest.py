"""A service for many subjects, and real workers that call it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.test import override_settings

from django_identity.background import upkeep_queue
from tests.lifecycle.conftest import celery_app
from tests.servers.stand_in import StandIn, setting
from tests.servers.workers import Workers

ANSWERS_AFTER = 0.04


@pytest.fixture
def service() -> Iterator[StandIn]:
    running = StandIn(delay=ANSWERS_AFTER)
    with override_settings(DJANGO_IDENTITY={"default": setting(running.origin)}):
        yield running
    running.close()


@pytest.fixture
def workers(service: StandIn, tmp_path: Path) -> Iterator[Workers]:
    queue, broker_url = f"identity-tests-{os.getpid()}", os.environ["CELERY_BROKER_URL"]
    held = Workers(
        {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": address_of_the_test_database(),
            "CELERY_BROKER_URL": broker_url,
            "STAND_IN": service.origin,
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
                for name in (queue, upkeep_queue(app)):
                    broker.default_channel.queue_delete(name)


def address_of_the_test_database() -> str:
    scheme, _, rest = os.environ["DATABASE_URL"].partition("://")
    place, _, named = rest.partition("/")
    _, question_mark, options = named.partition("?")
    return f"{scheme}://{place}/{connection.settings_dict['NAME']}{question_mark}{options}"
