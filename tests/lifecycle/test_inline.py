"""Stale claims, re-fetched while the person waits, where the policy says so."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_identity.gates import claims_of
from django_identity.lifecycle.upkeep import jobs
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.policy import IdentityPolicy
from tests.hostile import HostileService, answer, html
from tests.records import make_claim, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


class InlinePolicy(IdentityPolicy):
    """A site that would rather wait than turn somebody away."""

    refetch_inline = True


@pytest.fixture
def inline(service: HostileService) -> Iterator[None]:
    policy = f"{__name__}.{InlinePolicy.__name__}"
    given = service.settings(POLICY=policy, TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY={"default": given}):
        yield


@pytest.fixture
def ada(service: HostileService) -> User:
    """Somebody whose claims ran out a moment ago."""
    just_now = timezone.now() - timedelta(seconds=1)
    identity = make_identity(make_user(), refetch_due_at=just_now, scopes=["claims:read"])
    make_claim(identity, valid_until=just_now)
    make_grant(identity)
    return identity.user


def at_the_next_request(user: User) -> dict[str, object]:
    """What is proven to a user as Django loads them anew."""
    return claims_of(User.objects.get(pk=user.pk))


def poll(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_stale_claim_stays_closed_by_default(service: HostileService, ada: User) -> None:
    """Nobody waits for the service unless the site says so."""
    assert at_the_next_request(ada) == {}
    assert service.requests == []


@pytest.mark.usefixtures("inline")
def test_a_stale_claim_is_refetched_once(service: HostileService, ada: User) -> None:
    """However many gates the request passes."""
    person = User.objects.get(pk=ada.pk)
    assert claims_of(person) == claims_of(person) == {"age_over_18": True}
    assert at_the_next_request(ada) == {"age_over_18": True}
    assert service.calls("claims") == 1


@pytest.mark.usefixtures("inline")
def test_what_was_revoked_is_not_asked_for(service: HostileService, ada: User) -> None:
    """Only time may have closed the gate."""
    LinkedIdentity.objects.get().claims.update(revoked=True)
    assert at_the_next_request(ada) == {}
    assert service.requests == []


@pytest.mark.usefixtures("inline")
def test_a_failure_is_not_repeated_at_the_next_request(service: HostileService, ada: User) -> None:
    """Its pause holds here too."""
    service.answers["claims"] = html()
    assert at_the_next_request(ada) == at_the_next_request(ada) == {}
    assert service.calls("claims") == 1


@pytest.mark.usefixtures("inline")
def test_eight_wait_at_once_and_the_ninth_goes_on(service: HostileService, ada: User) -> None:
    """A slow service does not take every worker of the site; when it answers, others may wait."""
    just_now = timezone.now() - timedelta(seconds=1)
    crowd = [make_user(f"user-{n}") for n in range(8)]
    for n, user in enumerate(crowd):
        identity = make_identity(user, subject=f"other-{n}", refetch_due_at=just_now)
        make_claim(identity, valid_until=just_now)
        make_grant(identity)
    answered = threading.Event()
    service.meanwhile["claims"] = lambda: answered.wait(10)

    def wait(user: User) -> dict[str, object]:
        try:
            return at_the_next_request(user)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(wait, user) for user in crowd]
        poll(lambda: service.calls("claims") == 8)
        assert at_the_next_request(ada) == {}
        assert service.calls("claims") == 8
        answered.set()
        assert [one.result() for one in waiting] == [{}] * 8
    poll(lambda: at_the_next_request(ada) == {"age_over_18": True})


@pytest.mark.usefixtures("inline")
def test_whatever_goes_wrong_the_gate_stays_closed(
    service: HostileService,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A mistake of ours is a line in the log, without a word of what it held."""

    def broken(_identity_id: int) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(jobs, "refetch_one", broken)
    assert at_the_next_request(ada) == {}
    assert "RuntimeError" in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.usefixtures("inline")
def test_nobody_waits_longer_than_two_seconds(service: HostileService, ada: User) -> None:
    """The gate closes, and the spent refresh token's successor is stored when it comes."""
    TokenGrant.objects.update(access_expires_at=timezone.now())
    refreshed = answer({"access_token": "at-2", "refresh_token": "rt-2", "expires_in": 3600})

    def late(connection: socket.socket) -> None:
        time.sleep(2.3)
        connection.sendall(refreshed)

    service.answers["token"] = late
    began = time.monotonic()
    assert at_the_next_request(ada) == {}
    assert 1.9 < time.monotonic() - began < 2.3
    give_up = time.monotonic() + 5
    while time.monotonic() < give_up and not service.calls("claims"):
        time.sleep(0.05)
    assert service.calls("token") == 1
    while time.monotonic() < give_up and not at_the_next_request(ada):
        time.sleep(0.05)
    assert at_the_next_request(ada) == {"age_over_18": True}
