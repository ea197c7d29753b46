"""What Django mails to a site's operators when the database fails an event or an erasure.

Every frame is in it with its variables, Django's own too, and the parameters of each statement.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.core.signals import got_request_exception
from django.db import connection
from django.db.models import Model
from django.views.debug import ExceptionReporter

from django_identity import conf
from django_identity.exceptions import StorageUnavailable
from django_identity.lifecycle.erasure import erasure
from django_identity.models import ErasureReceipt, WebhookEvent
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_events import linked

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def missing(model: type[Model]) -> Iterator[None]:
    """A table that has not been migrated, as after a deployment in the wrong order."""
    table = model._meta.db_table
    with connection.schema_editor() as editor:
        editor.alter_db_table(model, table, "elsewhere")
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.alter_db_table(model, "elsewhere", table)


@pytest.fixture
def reports() -> Iterator[list[object]]:
    heard: list[object] = []

    def hear(**_arguments: object) -> None:
        heard.append("a report")

    got_request_exception.connect(hear)
    yield heard
    got_request_exception.disconnect(hear)


@pytest.mark.parametrize("event_type", ["kyc.verified", "data.deletion_requested"])
def test_an_event_that_cannot_be_stored_is_put_off(
    event_type: str, reports: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the database says: the service delivers again, and one line tells of it."""
    linked()
    with missing(WebhookEvent):
        response = post(event_body(event_type, note="note-on-her"))
    assert response.status_code == 503
    assert reports == []
    ours = [record for record in caplog.records if record.name == "django_identity"]
    assert ["storage_unavailable" in record.getMessage() for record in ours] == [True]
    assert "subject-1" not in caplog.text
    assert "note-on-her" not in caplog.text


def test_an_operators_erasure_that_cannot_begin() -> None:
    """The operator learns that it failed, and nobody else of whom."""
    linked()
    with missing(ErasureReceipt), pytest.raises(StorageUnavailable) as caught:
        erasure.erase_now(conf.application(), "subject-1")
    error = caught.value
    assert error.__traceback__ is not None
    # The first frame is the test's.
    trace = error.__traceback__.tb_next
    reporter = ExceptionReporter(None, type(error), error, trace)
    assert "subject-1" not in reporter.get_traceback_text() + reporter.get_traceback_html()


def test_the_command_says_that_it_can_be_run_again() -> None:
    linked()
    with missing(ErasureReceipt), pytest.raises(CommandError, match="can be run again"):
        call_command("identity_erase", "subject-1", "--yes", stdout=io.StringIO())
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
