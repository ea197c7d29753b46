"""What operators do to events: have the site's handlers run again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_identity.models import EventOutcome, LinkedIdentity, WebhookEvent
from tests.faces.admin import (
    EVENT,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    OVERVIEW,
    page,
    press,
    staff,
    superuser,
)
from tests.records import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    return superuser()


@pytest.fixture
def identity() -> LinkedIdentity:
    return make_identity(make_user("ada", email="ada@example.org"))


def test_a_replay_makes_the_handlers_due(operator: Client, identity: LinkedIdentity) -> None:
    """It asks first; then the event is due again, as if it had not been handled."""
    event = make_event(
        identity, "claim.issued", outcome="failed", attempts=8, handled_by=["shop.handlers.first"]
    )
    assert "Replay" in press(operator, "replay", event, into=EVENTS).content.decode()
    event.refresh_from_db()
    assert event.attempts == 8
    press(operator, "replay", event, into=EVENTS, confirmed="yes")
    event.refresh_from_db()
    assert (event.attempts, event.handled_at, event.handled_by) == (0, None, [])
    assert event.next_attempt_at is not None


def test_a_replay_needs_its_permission(identity: LinkedIdentity) -> None:
    """To look at events is not to replay them."""
    event = make_event(identity, "claim.issued", attempts=8)
    press(staff("view_webhookevent"), "replay", event, into=EVENTS, confirmed="yes")
    event.refresh_from_db()
    assert event.attempts == 8
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("confirmed", [{}, {"confirmed": "yes"}])
def test_a_replay_of_a_row_that_is_gone_says_so(
    operator: Client, identity: LinkedIdentity, confirmed: dict[str, str]
) -> None:
    """The purge or an erasure was faster."""
    event = make_event(identity, "claim.issued")
    WebhookEvent.objects.filter(pk=event.pk).delete()
    assert press(operator, "replay", event, into=EVENTS, **confirmed).status_code == 302
    assert "1 chosen entry is no longer in this list." in page(operator, EVENTS)
    assert not LogEntry.objects.exists()


def test_a_replay_leaves_out_what_a_worker_is_running(
    operator: Client, identity: LinkedIdentity
) -> None:
    """Its handlers would run twice at once."""
    leased_until = timezone.now() + timedelta(minutes=9)
    running = make_event(identity, "claim.issued", attempts=2, next_attempt_at=leased_until)
    press(operator, "replay", running, into=EVENTS, confirmed="yes")
    assert "1 event was left out: a worker is running its handlers." in page(operator, EVENTS)
    running.refresh_from_db()
    assert (running.attempts, running.next_attempt_at) == (2, leased_until)


def test_an_emptied_event_is_not_replayed(operator: Client, identity: LinkedIdentity) -> None:
    """And the page says why."""
    event = make_event(identity, "claim.issued", attempts=8, kept=1, payload=None)
    press(operator, "replay", event, into=EVENTS, confirmed="yes")
    assert "1 event was refused: its content was deleted." in page(operator, EVENTS)
    event.refresh_from_db()
    assert event.attempts == 8


def test_bidirectional_controls_are_shown_as_codes(operator: Client) -> None:
    """A subject, a type or a name cannot change the order of the text around it."""
    override, isolate = "\u202e", "\u2066"
    user = make_user(f"ada{override}nimda")
    identity = make_identity(user, subject=f"subject{isolate}1", kyc_level=f"level{override}9")
    event = make_event(identity, f"wallet{override}", payload={"note": f"gpj{override}.exe"})
    pages = [
        page(operator, EVENTS),
        page(operator, EVENT, event.pk),
        page(operator, IDENTITIES),
        page(operator, IDENTITY, identity.pk),
        press(operator, "replay", event, into=EVENTS).content.decode(),
    ]
    event.outcome, event.error = EventOutcome.FAILED, "Boom"
    event.save()
    pages.append(page(operator, OVERVIEW))
    assert not [text for text in pages if override in text or isolate in text]
    assert all("\\u20" in text for text in pages)
