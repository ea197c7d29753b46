"""The row of a grant: who may refresh it, when again, and what each way of ending leaves behind."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import (
    BudgetSpent,
    ConfigurationError,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceAway,
    ServiceUnavailable,
)
from django_identity.lifecycle.upkeep import tokens
from django_identity.lifecycle.upkeep.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service import ServiceClient, budget
from django_identity.service.answers import TokenAnswer
from django_identity.service.budget import Priority
from django_identity.service.client import TOKEN_SECONDS
from tests.hostile import HostileService, answer, html, http
from tests.lifecycle.held import announced, expired, in_the_meantime, stored
from tests.records import make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

SIGNED_IN = TokenAnswer("at-new", "rt-new", 3600.0, None, None)
INVALID_GRANT = answer({"error": "invalid_grant"}, status="400 Bad Request")


@pytest.fixture
def identity(service: HostileService) -> LinkedIdentity:
    return make_identity(make_user())


def paused_for() -> float | None:
    """Seconds until the same refresh token may be sent again."""
    retry_at = TokenGrant.objects.get().retry_at
    return None if retry_at is None else (retry_at - timezone.now()).total_seconds()


def upkeep() -> ServiceClient:
    return ServiceClient(conf.application(), priority=Priority.UPKEEP)


# How long the same refresh token is not sent again


@pytest.mark.parametrize(("header", "seconds"), [("Retry-After: 12\r\n", 12), ("", 1)])
def test_429_pauses_as_long_as_it_says(
    service: HostileService, identity: LinkedIdentity, header: str, seconds: int
) -> None:
    """The service has read nothing, so the token waits no longer than the service asks for."""
    expired(identity)
    service.answers["token"] = http(b"", status="429 Slow", headers=header)
    with pytest.raises(RateLimited):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert grant.retry_at is not None
    assert grant.retry_at - grant.updated_at == pytest.approx(
        timedelta(seconds=seconds), abs=timedelta(seconds=0.5)
    )


def test_what_was_never_sent_waits_five_seconds(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Nobody listens: the service cannot have seen the token, so it is not kept back for long."""
    expired(identity)
    service.close()
    nobody = service.settings(BASE_URL="http://127.0.0.1:9/api/v1", AUTH_URL="http://127.0.0.1:9")
    with (
        override_settings(DJANGO_IDENTITY={"default": nobody}),
        pytest.raises(ServiceUnavailable),
    ):
        access_token_for(identity)
    pause = paused_for()
    assert pause is not None
    assert pause <= 5


def test_what_may_have_been_read_waits_for_a_lease(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """The token could have been spent, and a second sight of it looks like theft."""
    expired(identity)
    service.answers["token"] = html("500 Oops")
    with pytest.raises(ServiceUnavailable):
        access_token_for(identity)
    pause = paused_for()
    assert pause is not None
    assert 15 < pause <= 30


def test_no_turn_in_the_budget_is_no_pause(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A call that was not made keeps nobody else from making it."""
    expired(identity)
    spent = service.settings(RATE_LIMIT="1/min", TIMEOUT=1)
    # Calls are counted in windows of the clock, and this test must not straddle two.
    time.sleep(max(0.0, time.time() % 60 - 57))
    with override_settings(DJANGO_IDENTITY={"default": spent}):
        budget.await_turn(conf.application(), Priority.INTERACTIVE, endpoint="token", patience=0)
        with pytest.raises(BudgetSpent):
            access_token_for(identity)
    assert paused_for() is None
    assert access_token_for(identity) == "at-1"


def test_a_service_that_is_away_for_upkeep_is_no_pause(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A person who comes meanwhile has the refresh made at once."""
    expired(identity)
    for _ in range(5):
        budget.note(conf.application(), "token", ServiceUnavailable())
    with pytest.raises(ServiceAway):
        access_token_for(identity, client=upkeep())
    assert paused_for() is None
    assert access_token_for(identity) == "at-1"


def test_nobody_waits_for_a_sibling_without_end(
    service: HostileService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that does not end in time is an error that says so; nothing is sent."""
    monkeypatch.setattr(tokens, "LONGEST_WAIT", 0.2)
    expired(identity, lease_until=timezone.now() + timedelta(seconds=25))
    with pytest.raises(RefreshPending):
        access_token_for(identity)
    assert service.requests == []


@pytest.mark.parametrize(
    ("column", "ahead"),
    [("lease_until", timedelta(seconds=31)), ("retry_at", timedelta(hours=1, seconds=5))],
)
def test_a_moment_that_nobody_can_have_meant_holds_nobody_up(
    service: HostileService, identity: LinkedIdentity, column: str, ahead: timedelta
) -> None:
    """A clock was wrong for a while: its leases and pauses must not outlive it by days."""
    expired(identity, **{column: timezone.now() + ahead})
    assert access_token_for(identity) == "at-1"


def test_a_lease_leaves_room_for_clocks_that_differ() -> None:
    """A worker whose clock is some seconds behind still believes a lease that has just begun."""
    assert tokens.LEASE + timedelta(seconds=5) <= tokens.LONGEST_BELIEVED_LEASE


def test_a_refresh_ends_before_its_lease() -> None:
    """Or a second worker would send the token while the first one still waits for its answer."""
    assert timedelta(seconds=TOKEN_SECONDS + 5) <= tokens.LEASE <= timedelta(seconds=30)


# What ends up in the row


def test_life_counts_from_the_question(service: HostileService, identity: LinkedIdentity) -> None:
    """However slow the answer is, the token is not thought to live longer than the service says."""
    expired(identity)
    arrived = []
    service.meanwhile["token"] = lambda: arrived.append(timezone.now())
    access_token_for(identity)
    assert TokenGrant.objects.get().access_expires_at <= arrived[0] + timedelta(seconds=3540)


def test_scopes_that_come_with_a_refresh_are_kept(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A service may give less than it gave; without a word the scopes stay."""
    expired(identity, scopes=["profile:read", "kyc:read"])
    access_token_for(identity)
    assert TokenGrant.objects.get().scopes == ["profile:read", "kyc:read"]
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.token = {"scope": "kyc:read"}
    access_token_for(identity)
    assert TokenGrant.objects.get().scopes == ["kyc:read"]


def test_a_database_that_fails_once_loses_no_token(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """The answer can be had only once, so storing it is tried again."""
    expired(identity)
    writes: list[str] = []

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        writes.extend([sql] * sql.startswith("UPDATE"))
        if sql.startswith("UPDATE") and len(writes) == 2:
            raise OperationalError
        return execute(sql, *rest)

    with connection.execute_wrapper(failing):
        assert access_token_for(identity) == "at-1"
    assert (stored(identity), service.refresh_tokens) == ("rt-1", ["rt-0"])


def test_a_database_that_is_away_for_a_while_loses_no_token(
    service: HostileService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing is tried until just before the lease ends, by whatever way the database fails."""
    monkeypatch.setattr(tokens, "LONGEST_STORE_PAUSE", 0.01)
    expired(identity)
    failures = [OperationalError, InterfaceError, InternalError] * 10
    writes: list[str] = []

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        writes.extend([sql] * sql.startswith("UPDATE"))
        if sql.startswith("UPDATE") and len(writes) > 1 and failures:
            raise failures.pop()
        return execute(sql, *rest)

    with connection.execute_wrapper(failing):
        assert access_token_for(identity) == "at-1"
    assert (stored(identity), service.refresh_tokens) == ("rt-1", ["rt-0"])


def test_a_database_that_stays_away_is_an_error_in_the_end(
    service: HostileService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the lease ends somebody else may refresh: nothing is stored after that."""
    monkeypatch.setattr(tokens, "LONGEST_STORE_PAUSE", 0.01)
    monkeypatch.setattr(tokens, "LEASE", timedelta(seconds=1.1))
    expired(identity)

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        if "generation" in sql.partition("WHERE")[0] and sql.startswith("UPDATE"):
            raise OperationalError
        return execute(sql, *rest)

    with connection.execute_wrapper(failing), pytest.raises(OperationalError):
        access_token_for(identity)


def test_a_sign_in_replaces_everything(service: HostileService, identity: LinkedIdentity) -> None:
    """Nothing of an older grant stays: no refresh token, no end of it, no pause, no mark."""
    later = timezone.now() + timedelta(hours=1)
    make_grant(
        identity, scopes=["x"], retry_at=later, lease_until=later, needs_reauthorization=True
    )
    tokens.store(conf.application(), identity, TokenAnswer("at-new", None, 3600.0, None, None))
    grant = TokenGrant.objects.get()
    assert stored(identity, "access_token") == "at-new"
    assert (grant.refresh_token, grant.refresh_expires_at) == ("", None)
    assert (grant.retry_at, grant.lease_until, grant.needs_reauthorization) == (None, None, False)
    assert grant.scopes == list(conf.application().scopes)


def test_a_refresh_that_fails_does_not_pause_a_sign_in(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """The tokens of a sign-in meanwhile are no business of the older ones' refresh."""
    expired(identity)
    service.answers["token"] = html("500 Oops")
    service.meanwhile["token"] = in_the_meantime(
        lambda: tokens.store(conf.application(), identity, SIGNED_IN)
    )
    with pytest.raises(ServiceUnavailable):
        access_token_for(identity)
    assert paused_for() is None
    assert access_token_for(identity) == "at-new"


def test_giving_up_spares_newer_tokens(service: HostileService, identity: LinkedIdentity) -> None:
    """A token that was refused says nothing about those that came since."""
    make_grant(identity)
    tokens.store(conf.application(), identity, SIGNED_IN)
    with announced() as heard:
        tokens.mark_dead(identity, generation=1, reason="refused")
    assert (heard, access_token_for(identity)) == ([], "at-new")


def test_a_dead_grant_is_free_and_of_a_new_generation(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Nobody holds it, and whoever still waits for an answer to the old tokens stores nothing."""
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert (grant.generation, grant.lease_until, grant.retry_at) == (2, None, None)


def test_a_grant_that_dies_twice_is_announced_once(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """First its key was missing; when that is back the service knows the token no more."""
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    lost = {"default": {**service.settings(), "ENCRYPTION_KEYS": ["another key, sixteen long"]}}
    with announced() as heard:
        with override_settings(DJANGO_IDENTITY=lost), pytest.raises(ReauthorizationNeeded):
            access_token_for(identity)
        with pytest.raises(ReauthorizationNeeded):
            access_token_for(identity)
    assert (heard, service.calls("token")) == ([identity], 1)


def test_another_environments_identity_has_no_token_here(service: HostileService) -> None:
    """A live person's token is never sent with the credentials of a test application."""
    identity = make_identity(make_user(), environment="live")
    make_grant(identity)
    with pytest.raises(ConfigurationError):
        access_token_for(identity)
    assert service.requests == []


DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("ends_in", "unused_for", "is_dead", "is_kept_alive"),
    [
        (5 * DAY - MINUTE, DAY + MINUTE, False, True),
        (5 * DAY + MINUTE, DAY + MINUTE, False, False),
        (5 * DAY - MINUTE, DAY - MINUTE, False, False),
        (-MINUTE, DAY + MINUTE, False, False),
        (5 * DAY - MINUTE, DAY + MINUTE, True, False),
    ],
    ids=["expiring unused", "not yet", "in use", "over", "dead"],
)
def test_what_is_kept_alive(
    service: HostileService,
    identity: LinkedIdentity,
    ends_in: timedelta,
    unused_for: timedelta,
    is_dead: bool,
    is_kept_alive: bool,
) -> None:
    """A living grant with under five days left whose access token ended over a day ago."""
    now = timezone.now()
    make_grant(
        identity,
        refresh_expires_at=now + ends_in,
        access_expires_at=now - unused_for,
        needs_reauthorization=is_dead,
    )
    assert tokens.keep_alive(identity) is is_kept_alive
    assert service.calls("token") == is_kept_alive
