"""Promise 3 under way: death, revocation, sign-in and rollback in the middle of a refresh."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import (
    ReauthorizationNeeded,
    RefreshPending,
)
from django_identity.lifecycle import events
from django_identity.lifecycle.upkeep import tokens
from django_identity.lifecycle.upkeep.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service.answers import TokenAnswer
from tests import crowd
from tests.hostile import HostileService, answer
from tests.lifecycle.held import announced, expired, in_the_meantime, stored
from tests.records import make_identity, make_user, sealed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def identity(service: HostileService) -> LinkedIdentity:
    return make_identity(make_user())


def test_two_hundred_callers_lead_to_one_refresh(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Two hundred callers at once, in four processes, cost one call and all get its token."""
    expired(identity)
    target = "tests.lifecycle.crowd_calls:access_token"
    # The crowd keeps the machine busy: the service is given time to be heard.
    with override_settings(DJANGO_IDENTITY={"default": service.settings(TIMEOUT=20)}):
        processes = [crowd.start(target, identity.pk, threads=50) for _ in range(4)]
    assert crowd.outcomes(*processes) == ["at-1"] * 200
    assert service.refresh_tokens == ["rt-0"]


def test_invalid_grant_after_a_sibling_won_is_no_end(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Before it is believed the row is read again: a sibling's newer tokens are used."""
    expired(identity)

    def sibling_wins() -> None:
        later = timezone.now() + timedelta(hours=1)
        TokenGrant.objects.update(
            generation=2,
            access_token=sealed(identity, "access_token", "at-sibling"),
            access_expires_at=later,
            lease_until=None,
        )

    service.meanwhile["token"] = in_the_meantime(sibling_wins)
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
    with announced() as heard:
        assert access_token_for(identity) == "at-sibling"
    assert heard == []
    assert not TokenGrant.objects.get().needs_reauthorization


def test_a_look_from_before_a_siblings_refresh_wins_no_lease(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Or the refresh token that the sibling has spent would be sent once more."""
    seen = expired(identity)
    assert access_token_for(identity) == "at-1"
    assert not tokens.lease(seen)
    assert TokenGrant.objects.get().lease_until is None


def test_a_dead_workers_lease_runs_out(service: HostileService, identity: LinkedIdentity) -> None:
    """Whoever comes next waits for the lease of a worker that died, then takes over."""
    expired(identity, lease_until=timezone.now() + timedelta(seconds=0.3))
    assert access_token_for(identity) == "at-1"
    assert TokenGrant.objects.get().lease_until is None


def test_a_killed_worker_leaves_a_row_that_the_next_can_use(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """SIGKILL while the service answers: nothing but a lease of at most 30 seconds is left."""
    expired(identity)
    process = crowd.start("tests.lifecycle.crowd_calls:access_token", identity.pk)
    service.meanwhile["token"] = process.kill
    process.communicate(timeout=30)
    service.meanwhile.clear()
    grant = TokenGrant.objects.get()
    assert grant.lease_until is not None
    assert grant.lease_until <= timezone.now() + timedelta(seconds=30)
    TokenGrant.objects.update(lease_until=timezone.now())
    service.refresh_tokens.clear()
    assert access_token_for(identity) == "at-1"


@pytest.mark.parametrize(
    ("moment", "number", "presented"),
    [("before", 1, 1), ("after", 1, 1), ("before", 2, 2), ("after", 2, 1)],
    ids=["before the lease", "before sending", "answered and not stored", "stored"],
)
def test_a_worker_killed_at_any_point_leaves_a_row_that_can_be_used(
    service: HostileService, identity: LinkedIdentity, moment: str, number: int, presented: int
) -> None:
    """The token is presented again only if its answer was lost with the worker."""
    expired(identity)
    service.token = {"refresh_token": "rt-next"}
    target = "tests.lifecycle.crowd_calls:killed_access_token"
    process = crowd.start(target, identity.pk, moment, number)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    sent = list(service.refresh_tokens)
    lease = TokenGrant.objects.get().lease_until
    assert lease is None or lease <= timezone.now() + timedelta(seconds=30)
    TokenGrant.objects.update(lease_until=lease and timezone.now())
    # A service that takes a token once more whose answer was lost.
    service.refresh_tokens.clear()
    assert access_token_for(identity) == "at-1"
    sent += service.refresh_tokens
    assert sent == ["rt-0"] * presented
    assert stored(identity) == "rt-next"


def test_an_answer_lost_with_its_worker_ends_in_renewal_at_a_strict_service(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Where a token is taken once and never again, the person is asked, and nothing crashes."""
    expired(identity)
    target = "tests.lifecycle.crowd_calls:killed_access_token"
    crowd.start(target, identity.pk, "before", 2).communicate(timeout=60)
    TokenGrant.objects.update(lease_until=timezone.now())
    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    assert heard == [identity]
    assert service.refresh_tokens == ["rt-0", "rt-0"]


def revoke(identity: LinkedIdentity) -> None:
    events.revoke(identity.subject_digest)


def test_a_revocation_on_its_way_throws_the_answer_away(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A grant that was deleted during the refresh does not come back."""
    expired(identity)
    service.meanwhile["token"] = in_the_meantime(lambda: revoke(identity))
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    assert service.refresh_tokens == ["rt-0"]
    assert not TokenGrant.objects.exists()


def test_a_grant_anew_after_a_revocation_is_not_overwritten(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Revoked and signed in again during the refresh: only the new grant's tokens count."""
    expired(identity)
    signed_in = TokenAnswer("at-new", "rt-new", 3600.0, None, None)

    def again() -> None:
        revoke(identity)
        tokens.store(conf.application(), identity, signed_in)

    service.meanwhile["token"] = in_the_meantime(again)
    assert access_token_for(identity) == "at-new"
    assert stored(identity) == "rt-new"


def test_a_sign_in_on_its_way_wins(service: HostileService, identity: LinkedIdentity) -> None:
    """The tokens of a sign-in during the refresh are kept; the refresh's are thrown away."""
    expired(identity)
    signed_in = TokenAnswer("at-new", "rt-new", 3600.0, None, None)
    service.meanwhile["token"] = in_the_meantime(
        lambda: tokens.store(conf.application(), identity, signed_in)
    )
    assert access_token_for(identity) == "at-new"
    assert stored(identity) == "rt-new"


def test_an_outer_transaction_that_rolls_back_loses_no_token(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """What was refreshed inside ``ATOMIC_REQUESTS`` stays stored, whatever the view does then."""
    expired(identity)
    with transaction.atomic():
        assert access_token_for(identity) == "at-1"
        transaction.set_rollback(True)
    assert stored(identity) == "rt-1"
    assert access_token_for(identity) == "at-1"


def test_a_caller_without_autocommit_loses_no_token(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A site that ends its transactions itself may take them back, too."""
    expired(identity)
    transaction.set_autocommit(False)
    try:
        assert access_token_for(identity) == "at-1"
        transaction.rollback()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert stored(identity) == "rt-1"


@pytest.fixture
def _wal() -> Iterator[None]:
    """On SQLite a transaction that has read would else keep everybody from committing."""
    modes = ("WAL", "DELETE") if connection.vendor == "sqlite" else ()
    for mode in modes[:1]:
        connection.cursor().execute(f"PRAGMA journal_mode = {mode}")
    yield
    for mode in modes[1:]:
        connection.cursor().execute(f"PRAGMA journal_mode = {mode}")


def failing_view(request: HttpRequest, identity_id: int) -> HttpResponse:
    access_token_for(LinkedIdentity.objects.get(pk=identity_id))
    make_user("written-by-the-view")
    raise ValueError


urlpatterns = [path("failing/<int:identity_id>/", failing_view)]


@pytest.mark.usefixtures("_wal")
def test_a_request_that_fails_under_atomic_requests_loses_no_token(
    service: HostileService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view's own writes are rolled back, what was refreshed for it is not."""
    expired(identity)
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    client = Client(raise_request_exception=False)
    with override_settings(ROOT_URLCONF=__name__):
        assert client.get(f"/failing/{identity.pk}/").status_code == 500
    assert not User.objects.filter(username="written-by-the-view").exists()
    assert service.refresh_tokens == ["rt-0"]
    assert stored(identity) == "rt-1"


def test_a_caller_that_locked_the_row_sends_nothing(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A transaction that holds the grant itself gets an error, and the refresh token is not spent.

    So it is on SQLite with whatever the transaction wrote.
    """
    expired(identity)
    with transaction.atomic():
        TokenGrant.objects.update(scopes=["profile:read"])
        with pytest.raises(RefreshPending):
            access_token_for(identity)
    assert service.requests == []
    assert access_token_for(identity) == "at-1"
