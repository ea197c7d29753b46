"""The site's handlers: each by itself, again until it succeeds or is given up."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.utils import timezone

from django_identity import handlers
from django_identity.handlers import on_event
from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.minute import follow_up, upkeep
from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from django_identity.service.webhooks import parse_event
from tests.deliveries import deliver, event_body, post
from tests.factories import make_event, make_identity, make_user
from tests.lifecycle.broken_statements import refused
from tests.lifecycle.commands import said_by

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def identity():
    return make_identity(make_user(), scopes=["kyc:read"])


@pytest.fixture
def register(identity):
    """Registers a handler that notes its calls, and raises what is in ``raises``."""

    def registered(event_type, name, raises=None):
        calls = []

        def handler(event):
            calls.append(event.payload)
            User.objects.create(username=f"{name}-{len(calls)}")
            if raises:
                raise raises[0]

        on_event(event_type, name=name)(handler)
        return calls

    return registered


def replayed(*arguments):
    """The command's first sentence."""
    return said_by("identity_replay", *arguments).partition(" A worker")[0]


def make_due():
    WebhookEvent.objects.filter(next_attempt_at__isnull=False).update(
        next_attempt_at=timezone.now(),
    )


def test_one_that_fails_holds_nobody_up(register, identity, caplog):
    """The others run, once, after the event was stored; it alone runs again.

    Nothing it wrote before it raised stays. It names the type as the policy text does.
    """
    raises = [RuntimeError("about ada@example.org")]
    failing = register("consent_revoked", "failing", raises)
    fine = register("consent.revoked", "fine")
    deliver("consent.revoked", note="kept")
    assert fine == []
    follow_up.retry_pending()
    assert len(failing) == 1
    assert len(fine) == 1
    assert fine[0]["note"] == "kept"
    assert not User.objects.filter(username="failing-1").exists()
    assert "ada@example.org" not in caplog.text
    identity.refresh_from_db()
    assert identity.consent == Consent.REVOKED
    raises.clear()
    assert follow_up.retry_pending() == 0  # not due yet
    make_due()
    assert follow_up.retry_pending() == 1
    assert len(failing) == 2
    assert len(fine) == 1
    event = WebhookEvent.objects.get()

    assert sorted(event.handled_by) == ["failing", "fine"]
    assert event.handled_at is not None


def test_twelve_tries_over_most_of_a_day(register):
    """Each pause is longer than the one before, and by chance a little off; then it has failed."""
    calls = register("kyc.rejected", "failing", [RuntimeError()])
    deliver("kyc.rejected")
    waited = timedelta()
    for number in range(1, follow_up.TRIES + 1):
        before = timezone.now()
        follow_up.retry_pending()
        event = WebhookEvent.objects.get()
        assert event.attempts == number
        assert event.error == "RuntimeError"
        waited += (event.next_attempt_at or before) - before
        make_due()
    assert timedelta(hours=10) < waited < timedelta(hours=21)
    assert len(calls) == follow_up.TRIES
    event = WebhookEvent.objects.get()

    assert event.outcome == "failed"
    assert event.next_attempt_at is None
    assert follow_up.retry_pending() == 0


def attempt(times):
    """Make what is due run so often; returns how often the process was ended by it."""
    ended = 0
    for _ in range(times):
        make_due()
        try:
            follow_up.retry_pending()
        except SystemExit:
            ended += 1
    return ended


def test_one_that_ends_its_process_is_given_up(register):
    """After the last try like any other: the next time nothing runs, and the event has failed.

    It starves nobody: the next attempt begins behind it.
    """
    calls = register("kyc.verified", "deadly", [SystemExit()])
    fine = register("kyc.verified", "fine")
    deliver("kyc.verified")
    assert attempt(follow_up.TRIES) == follow_up.TRIES
    assert WebhookEvent.objects.get().outcome != "failed"
    assert attempt(3) == 0
    assert len(calls) == follow_up.TRIES
    assert len(fine) == 1
    event = WebhookEvent.objects.get()
    assert event.outcome == "failed"
    assert event.next_attempt_at is None
    assert event.error == "ProcessEnded"


def test_a_replay_has_all_tries_again(register):
    """By id, or all that failed. What has succeeded does not run, unless it is asked for."""
    raises = [RuntimeError()]
    failing = register("kyc.verified", "failing", raises)
    fine = register("kyc.verified", "fine")
    for event_id in ("evt_x", "evt_y"):
        deliver("kyc.verified", event_id=event_id)
    attempt(follow_up.TRIES)
    failed = WebhookEvent.objects.filter(outcome="failed")
    assert failed.count() == 2
    assert len(failing) == 2 * follow_up.TRIES
    assert len(fine) == 2
    raises.clear()
    assert replayed("evt_x") == "1 event(s) are due."
    follow_up.retry_pending()
    event = WebhookEvent.objects.get(event_id="evt_x")
    assert event.outcome == "applied"
    assert event.attempts == 1
    assert event.handled_at is not None
    raises.append(RuntimeError())
    assert replayed("evt_x", "--again") == "1 event(s) are due."
    assert replayed("--failed") == "1 event(s) are due."
    follow_up.retry_pending()
    assert failed.count() == 1
    assert len(failing) == 2 * follow_up.TRIES + 3
    assert len(fine) == 3
    assert set(WebhookEvent.objects.values_list("handled_at", flat=True)) == {None}
    later = (timezone.now() + timedelta(hours=1)).isoformat()

    assert replayed("--since", later) == "0 event(s) are due."
    assert replayed("--since", "9998-12-31") == "0 event(s) are due."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name events"),
        (["--since", "yesterday"], "--since"),
        (
            ["evt_x"],
            r"^1 event\(s\) left out: not stored, emptied, or in a worker's hands$",
        ),
    ],
)
def test_the_command_wants_to_know_which(arguments, said):
    """Nothing is replayed by accident. An id may stand for two events, or be named twice."""
    with pytest.raises(CommandError, match=said):
        replayed(*arguments)
    identity = make_identity(make_user())
    for digest in ("one", "another"):
        make_event(identity, "kyc.verified", event_id="evt_y", event_digest=digest)
    assert replayed("evt_y", "evt_y") == "2 event(s) are due."
    with pytest.raises(CommandError, match=r"^1 event\(s\) left out"):
        replayed("evt_x", "evt_y")


def test_two_workers_do_not_run_one_event(register):
    """Whoever takes it has it for ten minutes, and no replay changes that, also after a failure."""
    meanwhile = []

    def look(event):
        # What a handler raises is caught, so it is looked at below.
        meanwhile.append(follow_up.run_handlers(event.pk))
        leased_for = WebhookEvent.objects.get().next_attempt_at - timezone.now()
        meanwhile.append(leased_for > timedelta(minutes=9))
        meanwhile.append(follow_up.replay(WebhookEvent.objects.all()))
        raise RuntimeError

    on_event("kyc.verified", name="meanwhile")(look)
    calls = register("kyc.verified", "slow")
    deliver("kyc.verified")
    attempt(2)
    assert meanwhile == [False, True, 0] * 2
    assert len(calls) == 1


def test_two_handlers_of_one_name_are_an_error(register):
    """One of them would never run. The same function may be registered twice, and for two types."""
    register("kyc.verified", "first")
    with pytest.raises(ImproperlyConfigured, match="name="):
        register("kyc.verified", "first")
    with pytest.raises(ImproperlyConfigured):
        on_event("kyc.verified", name="first")(lambda event: None)
    register("kyc.rejected", "first")
    handler = on_event("kyc.rejected", name="second")(len)
    assert on_event("kyc.rejected", name="second")(handler) is handler


async def handle_later(event):
    raise AssertionError


def yield_event(event):
    yield event


MISUSES = {
    "below a bare decorator": lambda: on_event(len),
    "of several types": lambda: on_event(["kyc.verified"]),
    "of no type": lambda: on_event(""),
    "async": lambda: on_event("kyc.verified")(handle_later),
    "a generator": lambda: on_event("kyc.verified")(yield_event),
    "without a name": lambda: on_event("kyc.verified")(partial(len)),
    "a path": lambda: on_event("kyc.verified", name="x")("shop.handle"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_what_would_never_be_called_is_an_error(misuse):
    """It is said when the module is imported, and no event counts as handled."""
    before = handlers.handlers_of("kyc.verified")
    with pytest.raises(ImproperlyConfigured):
        MISUSES[misuse]()
    assert handlers.handlers_of("kyc.verified") == before


# The person is erased, or leaves, while their handlers run


@pytest.mark.parametrize(
    "leave",
    [lambda row: erasure.erase_account(row.user), disconnecting.disconnect],
    ids=["erased", "disconnected"],
)
def test_no_handler_runs_after_its_person_has_gone(identity, leave):
    """Neither those behind, nor the one that failed, with an empty event."""
    seen = []

    def failing(event):
        seen.append(("failing", event.subject))
        raise RuntimeError

    def last(event):
        seen.append(("last", event.subject))

    LinkedIdentity.objects.update(made_account="")
    on_event("kyc.verified", name="failing")(failing)
    on_event("kyc.verified", name="leaves")(lambda event: leave(identity))
    on_event("kyc.verified", name="last")(last)
    deliver("kyc.verified")
    attempt(3)
    assert seen == [("failing", "subject-1")]
    assert WebhookEvent.objects.get().next_attempt_at is None


def test_the_handlers_of_a_deletion_run_after_the_erasure(register):
    """That has emptied the event. Those that fail are tried again."""
    raises = [RuntimeError()]
    first = register("data.deletion_requested", "first", raises)
    second = register("data.deletion_requested", "second")
    deliver("data.deletion_requested")
    attempt(1)
    assert not LinkedIdentity.objects.exists()
    assert len(first) == 1
    assert len(second) == 1
    raises.clear()
    attempt(1)
    assert len(first) == 2
    assert len(second) == 1


# One event that cannot be applied


def stored(event_type, **about):
    """The body of an event whose process died before it was applied. It is due now."""
    body = event_body(event_type, **about)
    event = parse_event(body)
    WebhookEvent.objects.stored(event, event.content)
    make_due()
    return body


def test_one_event_that_cannot_be_applied_ends_no_run(identity, caplog):
    """It is an attempt that failed. Those behind it, and the purge, have their turn.

    A revocation is never given up; and then its handlers have all their tries.
    """
    stored("consent.revoked")
    stored("claim.issued", subject="nobody")
    old = timezone.now() - timedelta(days=999)
    make_event(identity, "claim.issued", received_at=old)
    with refused("UPDATE", "linkedidentity"):
        upkeep.tend()
    failed, other = WebhookEvent.objects.order_by("pk")
    assert failed.outcome == ""
    assert failed.attempts == 1
    assert failed.error == "OperationalError"
    assert failed.next_attempt_at > timezone.now()
    assert other.outcome == "ignored"
    assert "identity.event.failed" in caplog.text
    with refused("UPDATE", "linkedidentity"):
        attempt(follow_up.TRIES + 2)
    failed.refresh_from_db()
    assert failed.outcome == ""
    assert failed.attempts == follow_up.TRIES + 3
    attempt(1)
    failed.refresh_from_db()

    assert failed.outcome == "applied"
    assert failed.error == ""
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


# Stored, and applied by upkeep


@pytest.mark.parametrize("subject", ["nobody", ""])
def test_no_handler_runs_for_nobody(register, subject):
    """Whether nobody is linked to the subject, or the event names none."""
    calls = register("consent.revoked", "first")
    body = stored("consent.revoked", subject=subject)
    attempt(2)
    post(body)
    attempt(2)
    row = WebhookEvent.objects.get()
    assert row.outcome == "ignored"
    assert row.event_id == ""
    assert row.next_attempt_at is None
    assert calls == []


def test_emptied_events_that_were_not_applied_stay_due(identity):
    """Nobody else would apply them."""
    stored("claim.revoked")
    LinkedIdentity.objects.update(made_account="")
    disconnecting.disconnect(LinkedIdentity.objects.get())
    upkeep.tend()
    assert WebhookEvent.objects.get().outcome == "ignored"
