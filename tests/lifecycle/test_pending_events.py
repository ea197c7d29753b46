"""Events whose handlers wait: what purge, erasure and replay leave them."""

from __future__ import annotations

import io
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_identity import tasks
from django_identity.conf import rules
from django_identity.lifecycle.erasure import erasure, retention
from django_identity.lifecycle.operators.doctor import diagnose
from django_identity.lifecycle.upkeep import follow_up
from django_identity.models import Retained, WebhookEvent
from tests.deliveries import deliver
from tests.lifecycle.test_handling import Register, make_due, refused_replay
from tests.lifecycle.test_handling import register as register
from tests.records import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def received(days: int) -> None:
    """All events came in so many days ago."""
    WebhookEvent.objects.update(received_at=timezone.now() - timedelta(days=days))


def test_a_waiting_event_keeps_what_its_handler_needs(register: Register) -> None:
    """Beyond ``EVENT_PAYLOAD_DAYS``; once it is handled, the next purge empties it."""
    calls = register("kyc.verified", "first")
    deliver("kyc.verified", kyc_level="level_2")
    received(days=31)
    assert retention.purge().payloads == 0
    assert follow_up.retry_pending() == 1
    assert [payload["kyc_level"] for payload in calls] == ["level_2"]
    assert retention.purge().payloads == 1
    assert WebhookEvent.objects.get().payload is None


def test_an_event_that_nobody_handled_fails_visibly(register: Register, caplog: Any) -> None:
    """After ``EVENT_DAYS`` its content goes; the log, the admin and the doctor say so."""
    calls = register("kyc.verified", "first")
    deliver("kyc.verified")
    received(days=181)
    tasks.purge.run()
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.error, event.payload) == ("failed", "never_handled", None)
    assert (event.next_attempt_at, event.kept) == (None, Retained.NO_PAYLOAD)
    (line,) = [each for each in caplog.records if each.name == "django_identity"]
    assert line.levelno == logging.ERROR
    assert line.getMessage() == "identity.event.not_handled application=default count=1"
    assert "1 event(s) failed" in "\n".join(found.message for found in diagnose())
    assert follow_up.retry_pending() == 0
    assert calls == []
    tasks.purge.run()
    event.refresh_from_db()
    assert (event.kept, event.subject) == (Retained.DIGEST_ONLY, "")


def test_the_line_names_an_application_that_is_gone(caplog: Any) -> None:
    """And not the default one, whose days its events keep."""
    identity = make_identity(make_user(), application="former")
    make_event(identity, "kyc.verified", next_attempt_at=timezone.now())
    received(days=181)
    retention.purge()
    (line,) = [each for each in caplog.records if each.name == "django_identity"]
    assert line.getMessage() == "identity.event.not_handled application=former count=1"


def test_the_days_are_longer_than_the_retries() -> None:
    """What check E031 compares with."""
    pauses = [follow_up.FIRST_PAUSE * follow_up.GROWTH**tries for tries in range(follow_up.TRIES)]
    longest = timedelta(seconds=1.25 * sum(pauses[:-1]))
    assert longest < timedelta(days=rules.LONGEST_RETRY_DAYS)


def test_a_replay_refuses_an_emptied_event(register: Register) -> None:
    """The handler would get an event without its content."""
    calls = register("kyc.verified", "first")
    deliver("kyc.verified", event_id="evt_old")
    follow_up.retry_pending()
    received(days=31)
    retention.purge()
    assert "1 refused" in refused_replay("evt_old", "--again")
    assert len(calls) == 1


def test_a_replay_refuses_an_erased_persons_event(register: Register) -> None:
    """Nobody is named in it any more."""
    calls = register("kyc.verified", "first")
    deliver("kyc.verified", event_id="evt_hers")
    follow_up.retry_pending()
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
    assert "1 refused" in refused_replay("evt_hers", "--again")
    assert len(calls) == 1


def test_a_failed_event_without_content_is_no_problem(register: Register) -> None:
    """Nobody can replay it, so the doctor asks nobody to, and ends with 0."""
    register("kyc.verified", "failing", [RuntimeError()])
    deliver("kyc.verified")
    WebhookEvent.objects.update(outcome="failed", next_attempt_at=None)

    def said() -> list[tuple[str, str]]:
        found = (each for each in diagnose() if each.check == "events")
        return [(each.level.value, each.message) for each in found]

    assert said() == [("PROBLEM", "1 event(s) failed")]
    deliver("data.deletion_requested")
    erasure.retry_pending()
    assert said() == [("warning", "1 event(s) failed, and their content is deleted")]


def test_an_erasure_cancels_waiting_handlers(register: Register) -> None:
    """All but those of the deletion itself."""
    calls, of_deletion = (
        register(kind, "first") for kind in ("kyc.verified", "data.deletion_requested")
    )
    deliver("kyc.verified")
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
    follow_up.retry_pending()
    assert (calls, len(of_deletion)) == ([], 1)


def test_a_replay_keeps_the_first_outcome(register: Register) -> None:
    """What the event itself did is its outcome again once the handlers are done."""
    raises: list[Exception] = [RuntimeError()]
    register("kyc.verified", "failing", raises)
    deliver("kyc.verified", event_id="evt_x", subject="nobody")
    for _ in range(follow_up.TRIES):
        make_due()
        follow_up.retry_pending()
    failed = WebhookEvent.objects.get()
    assert (failed.outcome, [each["outcome"] for each in failed.history]) == ("failed", ["ignored"])
    raises.clear()
    call_command("identity_replay", "evt_x", stdout=io.StringIO())
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.error) == ("ignored", "")
    told = [(each["outcome"], each["error"]) for each in event.history]
    assert told == [("ignored", ""), ("failed", "RuntimeError")]
    for _ in range(20):
        call_command("identity_replay", "evt_x", "--again", stdout=io.StringIO())
    event.refresh_from_db()
    assert len(event.history) <= follow_up.LONGEST_HISTORY + 2
    assert event.history[0] == failed.history[0]


def test_an_unknown_id_is_told() -> None:
    """A typing error must not look like success."""
    deliver("kyc.verified", event_id="evt_x")
    with pytest.raises(CommandError, match="not stored: evt_y"):
        call_command("identity_replay", "evt_x", "evt_y", stdout=io.StringIO())
