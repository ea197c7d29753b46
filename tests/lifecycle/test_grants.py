"""The row of a grant: who may refresh it, when again, and what each way of ending leaves behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import (
    AccessTokenRejected,
    ConfigurationError,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceUnavailable,
)
from django_identity.lifecycle import tokens
from django_identity.lifecycle.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.answers import TokenAnswer
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, html, http
from tests.lifecycle.held import announced, expired, in_the_meantime, stored

pytestmark = pytest.mark.django_db(transaction=True)

SIGNED_IN = TokenAnswer(Secret("at-new"), Secret("rt-new"), 3600.0, None, None)
INVALID_GRANT = answer({"error": "invalid_grant"}, status="400 Bad Request")


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    return make_identity(make_user())


def paused_for() -> float | None:
    """Seconds until the same refresh token may be sent again."""
    retry_at = TokenGrant.objects.get().retry_at
    return None if retry_at is None else (retry_at - timezone.now()).total_seconds()


# How long the same refresh token is not sent again


@pytest.mark.parametrize(
    ("header", "seconds"), [("Retry-After: 12\r\n", 12), ("", 30), ("Retry-After: 3600\r\n", 60)]
)
def test_429_pauses_as_long_as_it_says_up_to_a_minute(
    service: FakeService, identity: LinkedIdentity, header: str, seconds: int
) -> None:
    """The service has read nothing. A person waits a minute at most."""
    expired(identity)
    service.answers["token"] = http(b"", status="429 Slow", headers=header)
    with pytest.raises(RateLimited):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert grant.retry_at is not None
    assert grant.retry_at - grant.updated_at == pytest.approx(
        timedelta(seconds=seconds), abs=timedelta(seconds=0.5)
    )


def test_what_may_have_been_read_waits_for_half_a_minute(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """The token could have been spent, and a second sight of it looks like theft."""
    expired(identity)
    service.answers["token"] = html("500 Oops")
    with pytest.raises(ServiceUnavailable):
        access_token_for(identity)
    pause = paused_for()
    assert pause is not None
    assert 15 < pause <= 30


def test_nobody_waits_for_a_sibling_without_end(
    service: FakeService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that does not end in time is an error that says so; nothing is sent."""
    monkeypatch.setattr(tokens, "LONGEST_WAIT", 0.2)
    expired(identity, lease_until=timezone.now() + timedelta(seconds=25))
    with pytest.raises(RefreshPending):
        access_token_for(identity)
    assert service.requests == []


# What ends up in the row


def test_life_counts_from_the_question(service: FakeService, identity: LinkedIdentity) -> None:
    """However slow the answer is, the token is not thought to live longer than the service says."""
    expired(identity)
    arrived = []
    service.meanwhile["token"] = lambda: arrived.append(timezone.now())
    access_token_for(identity)
    assert TokenGrant.objects.get().access_expires_at <= arrived[0] + timedelta(seconds=3540)


def test_scopes_that_come_with_a_refresh_are_kept(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """A service may give less than it gave; without a word the scopes stay."""
    expired(identity, scopes=["profile:read", "kyc:read"])
    access_token_for(identity)
    assert TokenGrant.objects.get().scopes == ["profile:read", "kyc:read"]
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.token = {"scope": "kyc:read"}
    access_token_for(identity)
    assert TokenGrant.objects.get().scopes == ["kyc:read"]


def test_a_database_that_is_away_for_a_while_loses_no_token(
    service: FakeService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing is tried again for some seconds, by whatever way the database fails."""
    monkeypatch.setattr(tokens, "POLL", 0.01)
    expired(identity)
    failures = [OperationalError, InterfaceError, InternalError] * 10
    writes: list[str] = []

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        writes.extend([sql] * sql.startswith("UPDATE"))
        if sql.startswith("UPDATE") and len(writes) > 1 and failures:
            raise failures.pop()
        return execute(sql, *rest)

    with connection.execute_wrapper(failing):
        assert access_token_for(identity).reveal() == "at-1"
    assert (stored(identity), service.refresh_tokens) == ("rt-1", ["rt-0"])


def test_a_database_that_stays_away_is_an_error_in_the_end(
    service: FakeService, identity: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker does not try for ever."""
    monkeypatch.setattr(tokens, "POLL", 0.01)
    monkeypatch.setattr(tokens, "STORED_WITHIN", 0.1)
    expired(identity)

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        if "generation" in sql.partition("WHERE")[0] and sql.startswith("UPDATE"):
            raise OperationalError
        return execute(sql, *rest)

    with connection.execute_wrapper(failing), pytest.raises(OperationalError):
        access_token_for(identity)


def test_a_sign_in_replaces_everything(service: FakeService, identity: LinkedIdentity) -> None:
    """Nothing of an older grant stays: no refresh token, no end of it, no pause, no mark."""
    later = timezone.now() + timedelta(hours=1)
    make_grant(
        identity, scopes=["x"], retry_at=later, lease_until=later, needs_reauthorization=True
    )
    answered = TokenAnswer(Secret("at-new"), None, 3600.0, None, None)
    identity.scopes = ["profile:read"]
    tokens.store(conf.application(), identity, answered)
    grant = TokenGrant.objects.get()
    assert stored(identity, "access_token") == "at-new"
    assert (grant.refresh_token, grant.refresh_expires_at) == ("", None)
    assert (grant.retry_at, grant.lease_until, grant.needs_reauthorization) == (None, None, False)
    assert grant.scopes == ["profile:read"]


def test_a_refresh_that_fails_does_not_pause_a_sign_in(
    service: FakeService, identity: LinkedIdentity
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
    assert access_token_for(identity).reveal() == "at-new"


def test_giving_up_spares_newer_tokens(service: FakeService, identity: LinkedIdentity) -> None:
    """A token that was refused says nothing about those that came since."""
    make_grant(identity)
    site = conf.application()

    def refused_after_a_sign_in(token: Secret) -> None:
        if token == Secret("at-1"):
            tokens.store(site, identity, SIGNED_IN)
        raise AccessTokenRejected("refused")

    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        tokens.Reader(site, identity, ServiceClient(site)).read(refused_after_a_sign_in)
    assert (heard, access_token_for(identity).reveal()) == ([], "at-new")


def test_a_dead_grant_is_free_and_of_a_new_generation(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """Nobody holds it, and whoever still waits for an answer to the old tokens stores nothing."""
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert (grant.generation, grant.lease_until, grant.retry_at) == (2, None, None)


def test_a_grant_that_dies_twice_is_announced_once(
    service: FakeService, identity: LinkedIdentity
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


def test_another_environments_identity_has_no_token_here(service: FakeService) -> None:
    """A live person's token is never sent with the credentials of a test application."""
    identity = make_identity(make_user(), environment="live")
    make_grant(identity)
    with pytest.raises(ConfigurationError):
        access_token_for(identity)
    assert service.requests == []


DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
