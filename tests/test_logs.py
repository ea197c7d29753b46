"""Log lines with fields, and without anybody's data."""

import logging
import smtplib

import pytest

from django_identity.logs import LogEvent, log_trouble
from django_identity.models import WebhookEvent
from tests.deliveries import event_body, post

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = ("subject-1", "ada@example.org", "Obi", "at-secret", "192.0.2.1")


def test_an_event_names_its_type_outcome_and_row(caplog):
    """In the text and in fields; a repeat has the same row, and an unknown type no name."""
    caplog.set_level(logging.INFO, "django_identity")
    body = event_body("kyc.verified")
    for each in (body, body, event_body("ada@example.org")):
        post(each)

    lines = [each for each in caplog.records if each.name == "django_identity"]
    row, other = WebhookEvent.objects.order_by("pk").values_list("pk", flat=True)
    assert [(each.type, each.outcome, each.row) for each in lines] == [
        ("kyc.verified", "ignored", row),
        ("kyc.verified", "repeated", row),
        ("other", "ignored", other),
    ]
    assert lines[0].getMessage() == (
        f"identity.event.received type=kyc.verified outcome=ignored row={row}"
        " why=not_linked"
    )
    assert {each.event for each in lines} == {"identity.event.received"}
    assert not [name for name in PEOPLE if name in caplog.text]


def test_of_a_foreign_error_only_the_class_is_logged(caplog):
    """Its message may quote a person."""
    log_trouble(LogEvent.HANDLER_FAILED, ValueError("ada@example.org has no plan"))
    [line] = caplog.records
    assert line.getMessage() == ("identity.event.handler_failed error=ValueError")
    assert "ada@example.org" not in str(vars(line))


@pytest.mark.parametrize(
    ("error", "debug", "level"),
    [
        (ConnectionRefusedError(), True, "WARNING"),
        (smtplib.SMTPServerDisconnected(), True, "WARNING"),
        (ConnectionRefusedError(), False, "ERROR"),
        (ValueError(), True, "ERROR"),
    ],
)
def test_a_server_that_a_developer_does_not_run(caplog, settings, error, debug, level):
    """A warning, only with ``DEBUG``; an error of the site's own code is an error there, too."""
    settings.DEBUG = debug
    log_trouble(LogEvent.LINK_NOTICE_FAILED, error)
    assert [line.levelname for line in caplog.records] == [level]
