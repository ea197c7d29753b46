"""Revocation is at once: no broker, worker, session or sign-in on its way stands in between."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity import background
from django_identity.lifecycle.standing import standing_of
from django_identity.models import Consent, LinkedIdentity, TokenGrant, WebhookEvent
from tests.at_once import at_once
from tests.deliveries import deliver, event_body, post
from tests.faces.conftest import begin, come_back, service, sign_in
from tests.hostile import HostileService
from tests.records import make_claim, make_identity, make_user

__all__ = ["service"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(service: HostileService, settings: Any) -> HostileService:
    given = {**service.settings(), "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"]}
    settings.DJANGO_IDENTITY = {"default": given}
    return service


def is_signed_in(browser: Client) -> bool:
    return browser.get("/").content != b""


def test_a_session_ends_with_the_consent(site: HostileService) -> None:
    """The very next request is nobody's."""
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)
    deliver("consent.revoked")
    assert not is_signed_in(browser)


def test_an_ended_session_stays_ended(site: HostileService) -> None:
    """Neither a grant nor a sign-in elsewhere brings back a session that the revocation ended."""
    old, unused = Client(), Client()
    sign_in(old)
    sign_in(unused)
    now = timezone.now()
    deliver("consent.revoked", at=now)
    assert not is_signed_in(old)
    deliver("consent.granted", at=now + timedelta(seconds=1))
    assert not is_signed_in(unused)
    LinkedIdentity.objects.update(revoked_at=now - timedelta(seconds=2), consent="granted")
    new = Client()
    sign_in(new)
    assert is_signed_in(new)
    assert not is_signed_in(old)


def test_a_sign_in_elsewhere_ends_no_session(site: HostileService) -> None:
    """Two devices, one consent."""
    first, second = Client(), Client()
    sign_in(first)
    sign_in(second)
    assert is_signed_in(first)
    assert is_signed_in(second)


def test_a_session_that_a_test_forces_lasts(site: HostileService) -> None:
    """Django's own ``force_login`` makes a session that rests on the consent like any other."""
    identity = make_identity(make_user())
    browser = Client()
    browser.force_login(identity.user, backend="django_identity.backends.IdentityBackend")
    assert is_signed_in(browser)
    deliver("consent.revoked")
    assert not is_signed_in(browser)


@pytest.fixture
def silent_broker() -> Iterator[None]:
    """A broker that takes connections and never says a word; nobody is behind it."""
    before = background._publisher.app
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = Celery("silent", broker=f"amqp://127.0.0.1:{listener.getsockname()[1]}//")
        background._publisher.app = app
        yield
    background._publisher.app = before


@pytest.mark.usefixtures("silent_broker")
def test_a_silent_broker_keeps_nobody_waiting() -> None:
    """No worker runs and the broker answers nothing: closed all the same, and in no time."""
    identity = make_identity(make_user())
    make_claim(identity)
    started = time.monotonic()
    for event_type in ("kyc.verified", "claim.issued", "consent.revoked"):
        deliver(event_type)
    assert time.monotonic() - started < 2
    assert not standing_of(identity.user).is_linked


ROUNDS = 12


@pytest.mark.parametrize("event_type", ["consent.revoked", "data.deletion_requested"])
def test_a_sign_in_and_a_withdrawal_do_not_miss_each_other(
    site: HostileService, event_type: str
) -> None:
    """Whichever comes first by a hair: a new person whose consent is withdrawn is not let in."""
    for number in range(ROUNDS):
        site.subject = f"subject-{number}"
        site.profile = {"email": f"person-{number}@example.org"}
        browser = Client()
        state = begin(browser)
        body = event_body(event_type, subject=site.subject)
        at_once([lambda: come_back(browser, state), lambda: post(body)])  # noqa: B023
        granted = LinkedIdentity.objects.filter(subject=site.subject, consent=Consent.GRANTED)
        assert not granted.exists()
        assert not TokenGrant.objects.filter(identity__subject=site.subject).exists()
        assert not is_signed_in(browser)
        assert WebhookEvent.objects.filter(subject=site.subject).exists()


def test_a_sign_in_and_a_rejection_do_not_miss_each_other(site: HostileService) -> None:
    """What an event says of a person who is on the way in holds when they arrive."""
    for number in range(ROUNDS):
        site.subject = f"subject-{number}"
        site.profile = {"email": f"person-{number}@example.org"}
        browser = Client()
        state = begin(browser)
        later = timezone.now() + timedelta(seconds=1)
        body = event_body("kyc.rejected", subject=site.subject, at=later)
        at_once([lambda: come_back(browser, state), lambda: post(body)])  # noqa: B023
        identity = LinkedIdentity.objects.get(subject=site.subject)
        assert (identity.consent, identity.kyc_status) == (Consent.GRANTED, "rejected")


def test_one_event_delivered_twice_at_once_applies_once() -> None:
    """Both are acknowledged, one is stored, and neither fails."""
    for number in range(ROUNDS):
        user = make_user(f"user-{number}")
        make_identity(user, subject=f"subject-{number}")
        body = event_body("consent.revoked", subject=f"subject-{number}")
        answers = at_once([lambda: post(body)] * 4)  # noqa: B023
        assert [answer.status_code for answer in answers] == [200] * 4
    assert WebhookEvent.objects.count() == ROUNDS
    assert User.objects.count() == ROUNDS
