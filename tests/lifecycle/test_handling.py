"""The site's handlers: each by itself, again until it succeeds or is given up."""

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_identity import handlers
from django_identity.handlers import on_event
from django_identity.lifecycle import follow_up
from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from tests.deliveries import deliver
from tests.factories import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

Register = Callable[..., list[Any]]


@pytest.fixture
def identity() -> LinkedIdentity:
    return make_identity(make_user(), scopes=["kyc:read"])


@pytest.fixture
def register(identity: LinkedIdentity) -> Iterator[Register]:
    """Registers a handler that notes its calls, and raises what is in ``raises``."""
    names = []

    def registered(
        event_type: str, name: str, raises: Sequence[BaseException] | None = None
    ) -> list[Any]:
        calls: list[Any] = []

        def handler(event: WebhookEvent) -> None:
            calls.append(event.payload)
            User.objects.create(username=f"{name}-{len(calls)}")
            if raises:
                raise raises[0]

        on_event(event_type, name=name)(handler)
        names.append(name)
        return calls

    yield registered
    for name in names:
        handlers.forget(name)


def replayed(*arguments: str) -> str:
    """The command's first sentence."""
    said = io.StringIO()
    call_command("identity_replay", *arguments, stdout=said)
    return said.getvalue().partition(" A worker")[0]


def make_due() -> None:
    WebhookEvent.objects.filter(next_attempt_at__isnull=False).update(
        next_attempt_at=timezone.now()
    )


def test_a_handler_runs_once_for_an_event(register: Register) -> None:
    """With the event, after it was stored; a second run finds nothing to do."""
    calls = register("kyc.verified", "first")
    deliver("kyc.verified", kyc_level="level_1")
    assert calls == []
    assert follow_up.retry_pending() == 1
    assert [payload["kyc_level"] for payload in calls] == ["level_1"]
    assert follow_up.retry_pending() == 0
    event = WebhookEvent.objects.get()
    assert event.handled_at is not None
    assert event.handled_by == ["first"]


def test_an_event_without_handlers_waits_for_nothing() -> None:
    """It is never due."""
    deliver("kyc.verified")
    assert WebhookEvent.objects.get().next_attempt_at is None


def test_one_that_fails_holds_nobody_up(
    register: Register, identity: LinkedIdentity, caplog: Any
) -> None:
    """The others run, once; it alone runs again, and nothing it wrote before it raised stays."""
    raises: list[Exception] = [RuntimeError("about ada@example.org")]
    failing = register("consent.revoked", "failing", raises)
    fine = register("consent.revoked", "fine")
    deliver("consent.revoked")
    follow_up.retry_pending()
    assert (len(failing), len(fine)) == (1, 1)
    assert not User.objects.filter(username="failing-1").exists()
    assert "ada@example.org" not in caplog.text
    identity.refresh_from_db()
    assert identity.consent == Consent.REVOKED
    raises.clear()
    assert follow_up.retry_pending() == 0  # not due yet
    make_due()
    assert follow_up.retry_pending() == 1
    assert (len(failing), len(fine)) == (2, 1)


def test_twelve_tries_over_most_of_a_day(register: Register) -> None:
    """Each pause is longer than the one before, and by chance a little off; then it has failed."""
    calls = register("kyc.rejected", "failing", [RuntimeError()])
    deliver("kyc.rejected")
    waited = timedelta()
    for number in range(1, follow_up.TRIES + 1):
        before = timezone.now()
        follow_up.retry_pending()
        event = WebhookEvent.objects.get()
        assert (event.attempts, event.error) == (number, "RuntimeError")
        waited += (event.next_attempt_at or before) - before
        make_due()
    assert timedelta(hours=10) < waited < timedelta(hours=21)
    assert len(calls) == follow_up.TRIES
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.next_attempt_at) == ("failed", None)
    assert follow_up.retry_pending() == 0


def attempt(times: int) -> int:
    """Make what is due run so often; returns how often the process was ended by it."""
    ended = 0
    for _ in range(times):
        make_due()
        try:
            follow_up.retry_pending()
        except SystemExit:
            ended += 1
    return ended


def test_one_that_ends_its_process_is_given_up(register: Register) -> None:
    """After the last try like any other: the next time nothing runs, and the event has failed."""
    calls = register("kyc.verified", "deadly", [SystemExit()])
    deliver("kyc.verified")
    assert attempt(follow_up.TRIES) == follow_up.TRIES
    assert WebhookEvent.objects.get().outcome != "failed"
    assert attempt(3) == 0
    assert len(calls) == follow_up.TRIES
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.next_attempt_at) == ("failed", None)
    assert event.error == "ProcessEnded"


def test_a_replay_has_all_tries_again(register: Register) -> None:
    """By id, or all that failed. What has succeeded does not run, unless it is asked for."""
    raises: list[Exception] = [RuntimeError()]
    failing = register("kyc.verified", "failing", raises)
    fine = register("kyc.verified", "fine")
    for event_id in ("evt_x", "evt_y"):
        deliver("kyc.verified", event_id=event_id)
    attempt(follow_up.TRIES)
    failed = WebhookEvent.objects.filter(outcome="failed")
    assert (failed.count(), len(failing), len(fine)) == (2, 2 * follow_up.TRIES, 2)
    raises.clear()
    assert replayed("evt_x") == "1 event(s) are due."
    follow_up.retry_pending()
    event = WebhookEvent.objects.get(event_id="evt_x")
    assert (event.outcome, event.attempts) == ("applied", 1)
    assert event.handled_at is not None
    raises.append(RuntimeError())
    assert replayed("evt_x", "--again") == "1 event(s) are due."
    assert replayed("--failed") == "1 event(s) are due."
    follow_up.retry_pending()
    assert (failed.count(), len(failing), len(fine)) == (1, 2 * follow_up.TRIES + 3, 3)
    assert set(WebhookEvent.objects.values_list("handled_at", flat=True)) == {None}
    later = (timezone.now() + timedelta(hours=1)).isoformat()
    assert replayed("--since", later) == "0 event(s) are due."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name events"),
        (["--since", "yesterday"], "--since"),
        (["evt_x"], r"^1 event\(s\) left out: not stored, emptied, or in a worker's hands$"),
    ],
)
def test_the_command_wants_to_know_which(arguments: list[str], said: str) -> None:
    """Nothing is replayed by accident."""
    with pytest.raises(CommandError, match=said):
        replayed(*arguments)


def test_two_workers_do_not_run_one_event(register: Register) -> None:
    """Whoever takes it has it for ten minutes, and no replay changes that, also after a failure."""
    meanwhile: list[object] = []

    def look(event: WebhookEvent) -> None:
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
    handlers.forget("meanwhile")
    assert meanwhile == [False, True, 0] * 2
    assert len(calls) == 1


def test_two_handlers_of_one_name_are_an_error(register: Register) -> None:
    """One of them would never run. The same function may be registered twice, and for two types."""
    register("kyc.verified", "first")
    with pytest.raises(ImproperlyConfigured, match="name="):
        register("kyc.verified", "first")
    with pytest.raises(ImproperlyConfigured):
        on_event("kyc.verified", name="first")(lambda event: None)
    register("kyc.rejected", "first")
    handler = on_event("kyc.rejected", name="second")(len)
    assert on_event("kyc.rejected", name="second")(handler) is handler
    handlers.forget("second")


def test_a_type_may_be_named_as_the_policy_text_does(register: Register) -> None:
    """``consent_revoked`` is ``consent.revoked``."""
    calls = register("consent_revoked", "first")
    deliver("consent.revoked")
    follow_up.retry_pending()
    assert len(calls) == 1
