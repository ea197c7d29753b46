"""Behind a pooler whose every transaction may reach another process of the server."""

import os
from collections.abc import Iterator

import pytest
from django.db import connection, connections

from django_identity.models import EventOutcome, WebhookEvent
from tests.concurrency import at_once
from tests.databases import on_postgresql
from tests.deliveries import event_body, post
from tests.lifecycle.test_events import linked

pytestmark = [
    pytest.mark.race,
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    on_postgresql,
]

CALLERS = 4  # of the two connections that the pooler has
EACH = 30


@pytest.fixture(autouse=True)
def _pooled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New connections, which is what other threads open, are the pooler's."""
    connection.ensure_connection()
    with monkeypatch.context() as patch:
        patch.setitem(
            connections.settings["default"], "PORT", os.environ["POOLER_PORT"]
        )
        yield
    with (
        connection.cursor() as cursor
    ):  # the pooler's own, which would keep the database in use
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_every_event_is_taken_in_and_applied():
    """Though no connection knows what another one has met."""
    linked()
    answers = at_once([_deliveries] * CALLERS)
    assert [set(statuses) for statuses in answers] == [{200}] * CALLERS
    applied = WebhookEvent.objects.filter(outcome=EventOutcome.APPLIED)
    assert applied.count() == CALLERS * EACH


def _deliveries() -> list[int]:
    return [post(event_body("claim.issued")).status_code for _ in range(EACH)]
