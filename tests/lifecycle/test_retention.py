"""Retention: payloads go after 30 days, all but a digest after 180."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_identity import tasks
from django_identity.lifecycle import upkeep
from django_identity.lifecycle.erasure import retention
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    Job,
    LinkedIdentity,
    WebhookEvent,
)
from tests.deliveries import deliver, event_body, post
from tests.records import make_claim, make_event, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def _ago(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)


def received(days: int, *, number: int = 1) -> WebhookEvent:
    """An event that came in so many days ago."""
    deliver("kyc.verified", event_id=f"evt-{days}-{number}", provider="something")
    event = WebhookEvent.objects.get(event_id=f"evt-{days}-{number}")
    WebhookEvent.objects.filter(pk=event.pk).update(
        received_at=timezone.now() - timedelta(days=days)
    )
    return event


def test_payloads_go_first_then_all_but_a_digest() -> None:
    """By the days of the settings, counted from when the event came in."""
    young, old, oldest = received(29), received(31), received(181)
    purged = retention.purge()
    assert (purged.payloads, purged.events) == (2, 1)
    for event in (young, old, oldest):
        event.refresh_from_db()
    assert young.payload["provider"] == "something"
    assert (old.payload, old.subject, old.event_id) == (None, "subject-1", "evt-31-1")
    assert (oldest.payload, oldest.subject, oldest.subject_digest) == (None, "", "")
    assert (oldest.event_id, oldest.event_type) == ("", "")
    assert retention.purge() == retention.Purged(payloads=0, events=0, requests=0, identities=0)


def test_the_settings_say_when(settings) -> None:
    """``EVENT_PAYLOAD_DAYS`` and ``EVENT_DAYS``."""
    days = {"EVENT_PAYLOAD_DAYS": 1, "EVENT_DAYS": 2}
    settings.DJANGO_IDENTITY = {"default": {**settings.DJANGO_IDENTITY["default"], **days}}
    received(3)
    assert retention.purge().events == 1


def test_a_purged_event_is_still_known() -> None:
    """A captured grant that comes back after a year is a repeat, or too old to be taken."""
    identity = make_identity(make_user(), consent=Consent.REVOKED)
    body = event_body("consent.granted", event_id="evt-captured")
    post(body)
    LinkedIdentity.objects.update(consent=Consent.REVOKED, revoked_at=timezone.now())
    WebhookEvent.objects.update(received_at=timezone.now() - timedelta(days=365))
    retention.purge()
    assert post(body).status_code == 200
    identity.refresh_from_db()
    assert identity.consent == Consent.REVOKED
    assert WebhookEvent.objects.count() == 1


def test_it_goes_batch_by_batch() -> None:
    """However many there are, and whatever the size of a batch."""
    for number in range(5):
        received(200, number=number)
    seen: list[int] = []
    purged = retention.purge(size=2, progress=seen.append)
    assert (purged.payloads, purged.events) == (5, 5)
    assert seen == [2, 2, 1, 2, 2, 1]


def request_of(expires_at: datetime, state: str) -> AuthorizationRequest:
    return AuthorizationRequest.objects.create(
        state_digest=state, browser_digest="b", application="default", environment="test",
        purpose="sign_in", code_verifier="", redirect_uri="", expires_at=expires_at,
    )  # fmt: skip


def redemption_of(expires_at: datetime, digest: str) -> ConnectRedemption:
    return ConnectRedemption.objects.create(
        code_digest=digest, application="default", environment="test", user=make_user(digest),
        expires_at=expires_at,
    )  # fmt: skip


def test_started_sign_ins_are_swept() -> None:
    """As soon as they ran out."""
    now = timezone.now()
    kept = request_of(now + timedelta(minutes=1), "a")
    request_of(now - timedelta(seconds=1), "b")
    assert retention.purge().requests == 1
    assert list(AuthorizationRequest.objects.all()) == [kept]


def test_started_redemptions_are_swept() -> None:
    """Like started sign-ins."""
    now = timezone.now()
    kept = redemption_of(now + timedelta(minutes=1), "a")
    redemption_of(now - timedelta(seconds=1), "b")
    assert retention.purge().requests == 1
    assert list(ConnectRedemption.objects.all()) == [kept]


def test_handlers_do_not_wait_for_what_is_gone() -> None:
    """An event of which only the digest is left is due no more, and names no handler."""
    event = received(181)
    WebhookEvent.objects.update(next_attempt_at=timezone.now(), handled_by=["shop.handlers.first"])
    assert [retention.purge().events for _ in range(2)] == [0, 1]
    event.refresh_from_db()
    assert (event.next_attempt_at, event.handled_by) == (None, [])


def test_the_task_purges() -> None:
    """What beat calls each hour."""
    event = received(31)
    tasks.purge.run()
    event.refresh_from_db()
    assert event.payload is None


def test_the_command_says_what_went() -> None:
    """``identity_purge`` for a site without a worker."""
    received(200)
    out = io.StringIO()
    call_command("identity_purge", stdout=out)
    assert out.getvalue().startswith("1 payload(s) emptied, 1 event(s) reduced to a digest")
    assert Job.PURGE in upkeep.last_done()
    with pytest.raises(CommandError):
        call_command("identity_purge", "--batch", "0")


def test_revoked_identities_go_after_ninety_days() -> None:
    """The link and all that hangs on it; the account stays, and whoever came back stays linked."""
    revoked = {"consent": Consent.REVOKED}
    made = {
        "gone": make_identity(
            make_user("gone"), subject="gone", consent_changed_at=_ago(91), **revoked
        ),
        "not yet": make_identity(
            make_user("not yet"), subject="not yet", consent_changed_at=_ago(89), **revoked
        ),
        "granted": make_identity(
            make_user("granted"), subject="granted", consent_changed_at=_ago(91)
        ),
    }
    make_claim(made["gone"])
    assert retention.purge().identities == 1
    left = set(LinkedIdentity.objects.values_list("subject", flat=True))
    assert left == {"not yet", "granted"}
    assert User.objects.count() == 3


def test_an_application_that_is_gone_is_purged_too() -> None:
    """By what is stored: its alias was renamed, and nobody's data may stay for that."""
    identity = make_identity(
        make_user(),
        application="renamed",
        consent=Consent.REVOKED,
        consent_changed_at=_ago(91),
    )
    make_event(identity, "kyc.verified", received_at=_ago(31))
    make_event(identity, "kyc.rejected", received_at=_ago(181))
    purged = retention.purge()
    assert (purged.identities, purged.payloads, purged.events) == (1, 2, 1)
    assert not WebhookEvent.objects.filter(payload__isnull=False).exists()
