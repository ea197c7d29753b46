"""Revocation is at once: no broker, worker, session or sign-in on its way stands in between."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.exceptions import ReauthorizationNeeded
from django_identity.lifecycle.standing import standing_of
from django_identity.lifecycle.upkeep.claims import Refetched, refetch
from django_identity.lifecycle.upkeep.tokens import access_token_for
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.at_once import at_once
from tests.deliveries import SECRET, deliver, event_body, post
from tests.faces.conftest import begin, come_back, service, sign_in
from tests.hostile import HostileService
from tests.lifecycle.conftest import celery_app
from tests.records import make_identity, make_user

__all__ = ["service"]

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 10


@pytest.fixture
def site(service: HostileService, settings: Any) -> HostileService:
    given = service.settings(WEBHOOK_SECRETS=[SECRET], TIMEOUT=PATIENCE)
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


@pytest.fixture
def second(site: HostileService) -> datetime:
    """A second of a while ago, in which the tests below have things happen."""
    return timezone.now().replace(microsecond=0) - timedelta(seconds=30)


def signs_in_at(moment: datetime, *, meanwhile: Callable[[], object] = lambda: None) -> Client:
    """Somebody who set out at ``moment``, and what happens before they are back."""
    browser = Client()
    state = begin(browser)
    AuthorizationRequest.objects.filter(consumed_at=None).update(created_at=moment)
    meanwhile()
    come_back(browser, state)
    return browser


def revoked_at(moment: datetime, *, stamped: datetime) -> None:
    """A revocation that came in at ``moment``."""
    deliver("consent.revoked", at=stamped)
    newest = WebhookEvent.objects.latest("pk")
    WebhookEvent.objects.filter(pk=newest.pk).update(received_at=moment)


def test_whoever_comes_back_within_the_second_is_let_in(second: datetime) -> None:
    """A revocation that was heard before somebody set out is older, whatever second it names."""
    old = signs_in_at(second - timedelta(seconds=9))
    revoked_at(second + timedelta(milliseconds=200), stamped=second)
    new = signs_in_at(second + timedelta(milliseconds=500))
    assert is_signed_in(new)
    assert not is_signed_in(old)
    identity = LinkedIdentity.objects.get()
    assert standing_of(identity.user).proven_claims() == {"age_over_18": True}
    assert identity.refetch_due_at is not None


def test_a_revocation_of_that_second_that_comes_later_wins(second: datetime) -> None:
    """It may be the newer one, so it is; and what it ended stays so, after one more sign-in too."""
    signs_in_at(second - timedelta(seconds=9))
    revoked_at(second, stamped=second)
    first = signs_in_at(second + timedelta(milliseconds=200))
    unused = signs_in_at(second + timedelta(milliseconds=300))
    assert is_signed_in(first)
    revoked_at(second + timedelta(milliseconds=400), stamped=second)
    assert not is_signed_in(first)
    assert not TokenGrant.objects.exists()
    assert is_signed_in(signs_in_at(second + timedelta(milliseconds=600)))
    # Django forgets an ended session when it sees one, so this one was not shown before.
    assert not is_signed_in(unused)


def test_a_revocation_of_that_second_that_comes_meanwhile_wins(second: datetime) -> None:
    """Whoever is on the way in is refused."""
    signs_in_at(second - timedelta(seconds=9))

    def revoke() -> None:
        revoked_at(second + timedelta(milliseconds=700), stamped=second)

    browser = signs_in_at(second + timedelta(milliseconds=500), meanwhile=revoke)
    assert not is_signed_in(browser)
    assert not TokenGrant.objects.exists()


@pytest.mark.parametrize("event_type", ["consent.revoked", "data.deletion_requested"])
def test_a_withdrawal_of_somebody_unknown_is_obeyed_when_they_arrive(
    second: datetime, event_type: str
) -> None:
    """The event is stored, and found by the sign-in that was on its way."""
    browser = signs_in_at(second, meanwhile=lambda: deliver(event_type))
    assert not is_signed_in(browser)
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.exists()


def test_what_else_is_told_of_somebody_unknown_holds_when_they_arrive(second: datetime) -> None:
    """The newest word on their verification, and a claim that was revoked."""

    def told() -> None:
        deliver("kyc.rejected")
        deliver("claim.revoked", at=timezone.now() + timedelta(seconds=2))

    browser = signs_in_at(second, meanwhile=told)
    assert is_signed_in(browser)
    standing = standing_of(LinkedIdentity.objects.get().user)
    assert standing.kyc_status == "rejected"
    assert standing.proven_claims() == {}


def test_a_session_that_a_test_forces_lasts(site: HostileService) -> None:
    """Django's own ``force_login`` makes a session that rests on the consent like any other."""
    identity = make_identity(make_user())
    browser = Client()
    browser.force_login(identity.user, backend="django_identity.backends.IdentityBackend")
    assert is_signed_in(browser)
    deliver("consent.revoked")
    assert not is_signed_in(browser)


@pytest.fixture(params=["amqp://127.0.0.1:{}//", "redis://127.0.0.1:{}/0"], ids=["amqp", "redis"])
def silent_broker(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A broker that takes connections and never says a word; nobody is behind it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        address = request.param.format(listener.getsockname()[1])
        with celery_app(address) as app:
            app.conf.broker_transport_options = {"max_retries": 1, "interval_start": 0.0}
            yield listener


def test_a_silent_broker_keeps_nobody_waiting(
    site: HostileService, silent_broker: socket.socket
) -> None:
    """No worker runs and the broker answers nothing: the session ends all the same, at once."""
    browser = Client()
    sign_in(browser)
    started = time.monotonic()
    for event_type in ("kyc.verified", "claim.issued", "consent.revoked"):
        deliver(event_type)
    assert not is_signed_in(browser)
    assert time.monotonic() - started < 2
    assert not standing_of(LinkedIdentity.objects.get().user).is_linked
    # It was asked all right.
    silent_broker.accept()[0].close()


@pytest.mark.usefixtures("dead_broker")
def test_a_dead_broker_keeps_nobody_waiting(site: HostileService) -> None:
    """Nobody listens where it should be."""
    browser = Client()
    sign_in(browser)
    started = time.monotonic()
    for event_type in ("claim.issued", "consent.revoked"):
        deliver(event_type)
    assert not is_signed_in(browser)
    assert time.monotonic() - started < 2


def test_a_refetch_on_its_way_stores_nothing(site: HostileService) -> None:
    """The revocation that came meanwhile stands; so does what it took."""
    sign_in(Client())
    identity = LinkedIdentity.objects.get()
    site.meanwhile["claims"] = lambda: deliver("consent.revoked")
    assert refetch(identity) is Refetched.OVERTAKEN
    identity.refresh_from_db()
    assert (identity.credential, identity.consent) == ("", Consent.REVOKED)
    assert set(StoredClaim.objects.values_list("revoked", flat=True)) == {True}
    assert not TokenGrant.objects.exists()


def test_a_refresh_on_its_way_stores_nothing(site: HostileService) -> None:
    """The tokens that it brings are of nobody's consent any more."""
    sign_in(Client())
    TokenGrant.objects.update(access_expires_at=timezone.now())
    site.meanwhile["token"] = lambda: deliver("consent.revoked")
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(LinkedIdentity.objects.get())
    assert not TokenGrant.objects.exists()


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
