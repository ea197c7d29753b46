"""What operators do to events: have the site's handlers run again, and copy one for support."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings
from django.utils import timezone

from django_identity.models import LinkedIdentity, WebhookEvent
from tests.faces.admin import EVENTS, page, press, staff, superuser
from tests.records import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db

WEBHOOK_SECRET = "a-webhook-secret-for-tests-alone"


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


@pytest.mark.parametrize("action", ["replay", "copy"])
def test_an_events_action_needs_its_permission(identity: LinkedIdentity, action: str) -> None:
    """To look at events is not to replay or copy them."""
    event = make_event(identity, "claim.issued", attempts=8)
    answer = press(staff("view_webhookevent"), action, event, into=EVENTS, confirmed="yes")
    assert "Content-Disposition" not in answer.headers
    event.refresh_from_db()
    assert event.attempts == 8
    assert not LogEntry.objects.exists()


def script(browser: Client, event: WebhookEvent) -> str:
    answer = press(browser, "copy", event, into=EVENTS)
    assert answer["Content-Disposition"] == f'attachment; filename="event-{event.pk}.sh"'
    return answer.content.decode()


def sent_by(text: str, tmp_path: Path, **environment: str) -> tuple[str, bytes]:
    """What the script gives curl: the signature and the body. A stand-in plays curl."""
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$0.arguments"\ncat >"$0.body"\n')
    curl.chmod(0o700)
    (tmp_path / "event.sh").write_text(text)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin", **environment}
    command = ["/bin/sh", str(tmp_path / "event.sh"), "https://site.example/webhook/"]
    subprocess.run(command, check=True, env=path)
    arguments = (tmp_path / "curl.arguments").read_text()
    (signature,) = (
        line.partition(": ")[2] for line in arguments.splitlines() if "signature" in line
    )
    return signature, (tmp_path / "curl.body").read_bytes()


def configured(environment: str) -> dict[str, Any]:
    return {"default": {
        "ENVIRONMENT": environment, "BASE_URL": "https://id.example/api/v1",
        "AUTH_URL": "https://id.example", "CLIENT_ID": "c", "CLIENT_SECRET": "s" * 40,
        "WEBHOOK_SECRETS": [WEBHOOK_SECRET],
    }}  # fmt: skip


def test_a_copy_is_signed_in_test(
    operator: Client, identity: LinkedIdentity, tmp_path: Path
) -> None:
    """The body as stored, whatever is in it, under the test secret's signature; no secret."""
    payload = {"a": "it's $HOME `id` \\ \n \u202e é", "n": 1}
    event = make_event(identity, "claim.issued", payload=payload)
    with override_settings(DJANGO_IDENTITY=configured("test")):
        text = script(operator, event)
    assert WEBHOOK_SECRET not in text
    signature, body = sent_by(text, tmp_path)
    expected = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert signature == expected
    assert b"it's $HOME `id`" in body


def test_a_copy_is_never_signed_in_live(
    operator: Client, identity: LinkedIdentity, tmp_path: Path
) -> None:
    """Whoever runs it brings the receiver's secret; without one it does nothing."""
    event = make_event(identity, "claim.issued")
    with override_settings(DJANGO_IDENTITY=configured("live")):
        text = script(operator, event)
    genuine = hmac.new(WEBHOOK_SECRET.encode(), b'{"user_id":"subject-1"}', hashlib.sha256)
    assert WEBHOOK_SECRET not in text
    assert genuine.hexdigest() not in text
    with pytest.raises(subprocess.CalledProcessError):
        sent_by(text, tmp_path)
    signature, body = sent_by(text, tmp_path, WEBHOOK_SECRET="theirs")
    assert signature == hmac.new(b"theirs", body, hashlib.sha256).hexdigest()


def test_a_purged_event_is_not_copied(operator: Client, identity: LinkedIdentity) -> None:
    """There is nothing to send again."""
    event = make_event(identity, "claim.issued", payload=None)
    assert press(operator, "copy", event, into=EVENTS).status_code == 302
    assert "payload is still held" in page(operator, EVENTS)


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
