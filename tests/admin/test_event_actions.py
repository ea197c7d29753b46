"""What operators do to events: have the site's handlers run again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_identity.models import LinkedIdentity
from tests.admin.operators import (
    EVENT,
    EVENTS,
    page,
    press,
    staff,
    superuser,
)
from tests.factories import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    return superuser()


@pytest.fixture
def identity() -> LinkedIdentity:
    return make_identity(make_user("ada", email="ada@example.org"))


def test_a_replay_makes_the_handlers_due(operator: Client, identity: LinkedIdentity) -> None:
    """The event is due again, as if it had not been handled."""
    event = make_event(
        identity, "claim.issued", outcome="failed", attempts=8, handled_by=["shop.handlers.first"]
    )
    press(operator, "replay", event, into=EVENTS)
    event.refresh_from_db()
    assert (event.attempts, event.handled_at, event.handled_by) == (0, None, [])
    assert event.next_attempt_at is not None


def test_a_replay_needs_its_permission(identity: LinkedIdentity) -> None:
    """To look at events is not to replay them."""
    event = make_event(identity, "claim.issued", attempts=8)
    press(staff("view_webhookevent"), "replay", event, into=EVENTS)
    event.refresh_from_db()
    assert event.attempts == 8
    assert not LogEntry.objects.exists()


def test_a_replay_leaves_out_what_a_worker_is_running(
    operator: Client, identity: LinkedIdentity
) -> None:
    """Its handlers would run twice at once."""
    leased_until = timezone.now() + timedelta(minutes=9)
    running = make_event(identity, "claim.issued", attempts=2, next_attempt_at=leased_until)
    press(operator, "replay", running, into=EVENTS)
    assert "1 event was left out" in page(operator, EVENTS)
    running.refresh_from_db()
    assert (running.attempts, running.next_attempt_at) == (2, leased_until)


def test_an_emptied_event_is_not_replayed(operator: Client, identity: LinkedIdentity) -> None:
    """And the page says why."""
    event = make_event(identity, "claim.issued", attempts=8, event_id="", payload=None)
    press(operator, "replay", event, into=EVENTS)
    assert "1 event was left out" in page(operator, EVENTS)
    event.refresh_from_db()
    assert event.attempts == 8


def test_a_payload_shows_control_characters_as_codes(operator: Client) -> None:
    """What the service wrote cannot change the order of the text around it."""
    event = make_event(make_identity(make_user()), "x", payload={"note": "gpj\u202e.exe"})
    text = page(operator, EVENT, event.pk)
    assert "\u202e" not in text
    assert "gpj\\u202e.exe" in text


def test_an_event_that_names_nobody_asks_for_no_replay(
    operator: Client, identity: LinkedIdentity
) -> None:
    """No handler of the site has failed, and no replay would help."""
    kept = {"event_id": "", "subject": "", "subject_digest": "", "payload": None}
    event = make_event(identity, "consent.revoked", outcome="failed", error="names_nobody", **kept)
    text = page(operator, EVENT, event.pk)
    assert "The event names nobody" in text
    assert "Replay it" not in text
