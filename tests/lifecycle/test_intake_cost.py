"""The intake's statements: few, whatever the event, and the same meaning on every database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.handlers import EventType
from django_identity.lifecycle.erasure import erasure
from django_identity.models import WebhookEvent
from tests.databases import nothing_fails, on_postgresql
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.conftest import Published
from tests.lifecycle.test_events import NOW, linked
from tests.sandbox.receiver import until

# With a broker: what is to be done after the response is looked up then.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("published")]

# What begins and ends the transaction, and limits how long it waits.
TRANSACTION = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "SET", "SELECT CASE",
)  # fmt: skip


def statements(captured: CaptureQueriesContext) -> list[str]:
    """Those about events and identities."""
    sent = [query["sql"].strip() for query in captured]
    return [statement for statement in sent if not statement.startswith(TRANSACTION)]


MOST_STATEMENTS = 6
TYPES = [*EventType, "wallet.opened"]


@pytest.mark.parametrize("event_type", TYPES)
@pytest.mark.parametrize(
    ("subject", "at"),
    [("subject-1", 0), ("subject-1", -7200), ("nobody", 0)],
    ids=["new", "too late", "of nobody here"],
)
def test_intake_takes_at_most_six_statements(event_type: str, subject: str, at: int) -> None:
    """Besides those of the transaction, whatever it is about; a write comes first."""
    linked()
    moment = NOW + timedelta(seconds=at)
    with CaptureQueriesContext(connection) as captured:
        deliver(event_type, subject=subject, at=moment)
    sent = statements(captured)
    assert len(sent) <= MOST_STATEMENTS, sent
    assert sent[0].startswith("INSERT"), sent


def test_a_late_event_of_somebody_erased_and_back_names_nobody() -> None:
    """It is superseded, and emptied."""
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
    since = timezone.now()
    linked(consent_changed_at=since, signed_in_at=since, kyc_changed_at=since)
    deliver("consent.revoked", at=NOW - timedelta(hours=2), note="a note")
    event = WebhookEvent.objects.get(event_type="consent.revoked")
    assert (event.outcome, event.subject, event.payload) == ("superseded", "", None)


def test_a_repeat_takes_two_statements() -> None:
    """The INSERT that does nothing, and the comparison of the bodies."""
    linked()
    body = event_body("claim.revoked")
    assert post(body).status_code == 200
    with CaptureQueriesContext(connection) as captured:
        assert post(body).status_code == 200
    assert len(statements(captured)) == 2


@on_postgresql
def test_a_repeat_is_no_error() -> None:
    """The server would write the statement into its log, with the person in it."""
    body = event_body("claim.revoked")
    with nothing_fails():
        assert [post(body).status_code for _ in range(3)] == [200] * 3


def test_a_row_that_is_due_keeps_its_place(published: Published) -> None:
    """Its UPDATE changes no indexed column; the re-fetch is still asked for at once."""
    due_at = NOW - timedelta(hours=1)
    identity = linked(refetch_due_at=due_at)
    deliver("claim.issued")
    identity.refresh_from_db()
    assert identity.refetch_due_at == due_at
    until(published)
    assert published() == [[identity.pk]]


def test_a_consent_that_stands_needs_no_search_for_erasures() -> None:
    """An erasure begins with a revocation."""
    linked()
    with CaptureQueriesContext(connection) as captured:
        deliver("consent.granted")
    assert not [sent for sent in statements(captured) if "erasurereceipt" in sent]
    assert WebhookEvent.objects.get().outcome == "applied"
