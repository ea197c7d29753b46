"""Promise 3: a rotating refresh token is never spent twice, and never lost."""

import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, InternalError, OperationalError, transaction
from django.test import override_settings
from django.utils import timezone

from django_identity.exceptions import (
    AccessTokenRejected,
    ClientRejected,
    ConfigurationError,
    MalformedAnswer,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    SealedValueUnreadable,
    ServiceRefusal,
    ServiceUnavailable,
)
from django_identity.lifecycle.ground import runs
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import grants, tokens
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import TokenGrant
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import answer, html, http, refusal, reset, truncated
from tests.lifecycle.broken_statements import refused
from tests.lifecycle.grants import announced, expired, stored

pytestmark = pytest.mark.django_db(transaction=True)

SIGNED_IN = TokenAnswer(Secret("at-new"), Secret("rt-new"), 3600.0, None, None)


@pytest.fixture
def identity(service):
    return make_identity(make_user())


def test_a_refresh_stores_both_tokens(service, identity):
    """The rotated refresh token takes the place of the spent one, and so do scopes that come along.

    A service may give less than it gave; without a word the former ones stay.
    """
    expired(identity, scopes=["profile:read", "kyc:read"])
    assert access_token_for(identity).reveal() == "at-1"
    assert stored(identity) == "rt-1"
    assert service.refresh_tokens == ["rt-0"]
    grant = TokenGrant.objects.get()
    assert grant.generation == 2
    assert grant.lease_until is None
    assert grant.scopes == ["profile:read", "kyc:read"]
    assert access_token_for(identity).reveal() == "at-1"

    TokenGrant.objects.update(access_expires_at=timezone.now())
    given = {"access_token": "at-x", "expires_in": 3600, "scope": "kyc:read"}
    service.answers["token"] = given
    assert access_token_for(identity).reveal() == "at-x"
    assert stored(identity) == "rt-1"
    assert TokenGrant.objects.get().scopes == ["kyc:read"]


def slow(asked=""):
    return http(
        b"",
        status="429 Slow",
        headers=f"Retry-After: {asked}\r\n" * bool(asked),
    )


@pytest.mark.parametrize(
    ("bad", "error", "pause"),
    [
        (slow("12"), RateLimited, 12),
        (slow(), RateLimited, 30),
        (slow("3600"), RateLimited, 60),
        (
            answer({"error": "invalid_request"}, status="400 Bad Request"),
            ServiceUnavailable,
            30,
        ),
        (
            answer({"error": "invalid_client"}, status="401 Unauthorized"),
            ServiceRefusal,
            30,
        ),
        (html("500 Oops"), ServiceUnavailable, 30),
        (html("401 Unauthorized"), ServiceUnavailable, 30),
        (
            answer(
                {"success": False, "error": {"code": "UNAUTHORIZED"}},
                status="401 Unauthorized",
            ),
            ClientRejected,
            30,
        ),
        (
            answer({"error": "invalid_scope"}, status="400 Bad Request"),
            ServiceUnavailable,
            30,
        ),
        (answer({"error": "invalid_grant"}, status="503 Busy"), ServiceUnavailable, 30),
        (
            answer(
                {"success": False, "error": {"code": "APP_SUSPENDED"}},
                status="403 Forbidden",
            ),
            ServiceUnavailable,
            30,
        ),
        (
            answer({"error": "Not Found"}, status="404 Not Found"),
            ServiceUnavailable,
            30,
        ),
        (html("503 Oops"), ServiceUnavailable, 30),
        (html(), ServiceUnavailable, 30),
        (answer({"refresh_token": "rt", "expires_in": 60}), MalformedAnswer, 30),
        (truncated, ServiceUnavailable, 30),
        (reset, ServiceUnavailable, 30),
    ],
    ids=[
        "429 12",
        "429",
        "429 3600",
        "invalid_request",
        "invalid_client",
        "500",
        "401",
        "unauthorized",
        "invalid_scope",
        "invalid_grant 503",
        "suspended",
        "404",
        "503",
        "html",
        "half",
        "truncated",
        "reset",
    ],
)
def test_what_is_not_invalid_grant_keeps_the_tokens(
    service,
    identity,
    bad,
    error,
    pause,
):
    """Whatever else goes wrong, nothing is dropped, and the same token is not sent again at once:
    it could have been read. After half a minute it is tried again, or when the service says, within
    a minute.
    """
    expired(identity)
    service.answers["token"] = bad
    with pytest.raises(error):
        access_token_for(identity)
    assert stored(identity) == "rt-0"
    with pytest.raises(RefreshPending):
        access_token_for(identity)
    assert service.calls("token") == 1
    waits = TokenGrant.objects.get().retry_at - timezone.now()
    assert waits.total_seconds() == pytest.approx(pause, abs=2)
    TokenGrant.objects.update(retry_at=timezone.now())
    service.answers.clear()
    service.refresh_tokens.clear()
    assert access_token_for(identity).reveal() == "at-1"


@pytest.mark.parametrize("minutes", [1, 30, 72 * 60])
def test_no_token_is_refreshed_in_a_pause(service, identity, minutes):
    """Whoever asks: a restored token would end the newer ones of its person."""
    until = timezone.now() + timedelta(minutes=minutes)
    runs.pause(until=until)
    make_grant(identity)
    assert access_token_for(identity).reveal() == "at-0"
    with pytest.raises(
        RateLimited,
        match=f"pause until {until:%Y-%m-%d %H:%M} UTC",
    ) as raised:
        access_token_for(identity, rejected=Secret("at-0"))
    assert raised.value.pause == pytest.approx(minutes * 60, abs=5)
    assert raised.value.retry_after <= 60
    TokenGrant.objects.update(access_expires_at=timezone.now())
    assert list(upkeep.refetch_these([identity.pk])) == [Refetched.NOT_NOW]
    with pytest.raises(RateLimited):
        access_token_for(identity)
    assert service.calls("token") == 0
    assert runs.newest().paused_until == until
    runs.resume()

    assert access_token_for(identity).reveal() == "at-1"


@pytest.mark.parametrize("code", ["invalid_grant", "token_inactive", "TOKEN_INACTIVE"])
@pytest.mark.parametrize("status", ["200 OK", "400 No", "404 No"])
@pytest.mark.parametrize("is_oauth", [True, False])
def test_what_names_the_grant_ends_it(service, identity, code, status, *, is_oauth):
    """Whatever the status below 500: the tokens are dropped, the site hears of it once, and the
    service is asked no more.
    """
    expired(identity)
    service.answers["token"] = refusal(code, status)
    if is_oauth:
        service.answers["token"] = answer({"error": code}, status=status)

    with announced() as heard:
        for _ in range(2):
            with pytest.raises(ReauthorizationNeeded):
                access_token_for(identity)

    grant = TokenGrant.objects.get()
    assert grant.needs_reauthorization
    assert grant.access_token == ""
    assert grant.refresh_token == ""
    assert grant.generation == 2
    assert grant.lease_until is None
    assert grant.retry_at is None
    assert heard == [identity]
    assert service.calls("token") == 1


def test_newer_tokens_outlive_the_end_of_the_older(service, identity):
    """The row is read again: a sign-in came while the service was asked."""
    expired(identity)
    service.answers["token"] = answer({"error": "token_inactive"}, status="401 No")
    service.meanwhile["token"] = lambda: grants.store(identity, SIGNED_IN)
    assert access_token_for(identity).reveal() == "at-new"
    assert stored(identity) == "rt-new"


@pytest.mark.parametrize(
    "way",
    ["user_id", "two", "id_token", "access_token", "two tokens"],
)
def test_a_token_of_another_subject_is_refused(service, identity, way):
    """A refresh never changes the subject: the answer is not stored, the grant is dead."""
    expired(identity)
    signed = service.identity_token("somebody-else")
    service.token = {
        "user_id": {"user_id": "somebody-else"},
        "two": {"user_id": "a", "sub": "b"},
        "id_token": {"id_token": signed},
        "access_token": {"access_token": signed},
        "two tokens": {"user_id": "subject-1", "access_token": signed},
    }[way]
    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert grant.needs_reauthorization is True
    assert grant.refresh_token == ""
    assert heard == [identity]


@pytest.mark.parametrize(
    "odd",
    [
        {"user_id": 7},
        {"user_id": ""},
        {"sub": ".."},
        {"scope": ["claims:read"]},
        {"scope": "\0"},
        {"token_type": "mac"},
        {"token_type": 7},
        {"expires_in": "soon"},
        {"expires_in": -1},
        {"id_token": "e30.e30.e30"},
        {"id_token": 7},
        {"error": None},
        {"success": None},
    ],
    ids=str,
)
def test_a_usable_pair_is_stored_whatever_else_is_odd(service, identity, odd):
    """The refresh token that was sent is spent: to throw the new one away would end the grant."""
    expired(identity)
    service.token = odd
    assert access_token_for(identity).reveal() == "at-1"
    TokenGrant.objects.update(access_expires_at=timezone.now())
    assert access_token_for(identity).reveal() == "at-2"
    assert service.refresh_tokens[1] == "rt-1"


def test_a_token_that_is_of_no_use_is_replaced_once(service, identity):
    """One that no key opens, or that was refused before its time. A sibling's new one is enough."""
    make_grant(identity)
    TokenGrant.objects.update(access_token="v1.00000000.bm90IG91cnM=")
    assert access_token_for(identity).reveal() == "at-1"
    for _ in range(2):
        replaced = access_token_for(identity, rejected=Secret("at-1"))
        assert replaced.reveal() == "at-2"
    assert service.calls("token") == 2
    reader = tokens.Reader(identity)
    assert reader.read(lambda token: token).reveal() == "at-2"
    assert "at-2" not in repr(reader)


@pytest.mark.parametrize(("lifetime", "margin"), [(3600, 60), (100, 10)])
def test_a_token_is_not_used_to_its_last_second(service, identity, lifetime, margin):
    """Clocks differ and calls take time: a tenth of the life, a minute at most, is left over.

    It counts from the question, however slow the answer is.
    """
    expired(identity)
    service.token = {"expires_in": lifetime}
    arrived = []
    service.meanwhile["token"] = lambda: arrived.append(timezone.now())
    access_token_for(identity)
    ends_in = TokenGrant.objects.get().access_expires_at - arrived[0]
    most = lifetime - margin
    assert most - 2 < ends_in.total_seconds() <= most


@pytest.mark.parametrize("gone", [{"is_active": False}, {"last_name": "Closed"}])
def test_a_disabled_or_hidden_account_gets_no_token(service, identity, hiding, gone):
    """Not even a live one: the person is shut out here, and nothing is asked in their name."""
    make_grant(identity)
    User.objects.update(**gone)
    for expires_at in (timezone.now() + timedelta(hours=1), timezone.now()):
        TokenGrant.objects.update(access_expires_at=expires_at)
        with pytest.raises(ReauthorizationNeeded):
            access_token_for(identity)
    assert service.requests == []
    assert not TokenGrant.objects.get().needs_reauthorization
    User._base_manager.update(is_active=True, last_name="")
    assert access_token_for(identity).reveal() == "at-1"


# What ends up in the row


@pytest.mark.parametrize("error", [OperationalError, InterfaceError, InternalError])
def test_a_database_that_is_away_for_a_while_loses_no_token(
    service,
    identity,
    monkeypatch,
    error,
):
    """Storing is tried again for some seconds, by whatever way the database fails. Not for ever."""
    monkeypatch.setattr(grants, "TRIED_EVERY", 0.01)
    expired(identity)
    # The first one takes the lease.
    with refused("UPDATE", "generation", error=error, after=1, times=2):
        assert access_token_for(identity).reveal() == "at-1"
    assert stored(identity) == "rt-1"
    assert service.refresh_tokens == ["rt-0"]

    TokenGrant.objects.update(access_expires_at=timezone.now())
    monkeypatch.setattr(grants, "STORED_WITHIN", 0.1)
    with refused("UPDATE", "generation", after=1), pytest.raises(OperationalError):
        access_token_for(identity)


def test_a_sign_in_replaces_everything(identity):
    """Nothing of an older grant stays: no refresh token, no end of it, no pause, no mark."""
    later = timezone.now() + timedelta(hours=1)
    held = {"scopes": ["x"], "retry_at": later, "lease_until": later}
    make_grant(identity, needs_reauthorization=True, **held)
    identity.scopes = ["profile:read"]
    grants.store(identity, replace(SIGNED_IN, refresh_token=None))
    grant = TokenGrant.objects.get()
    assert stored(identity, "access_token") == "at-new"
    assert grant.refresh_token == ""
    assert grant.refresh_expires_at is None
    assert grant.retry_at is None
    assert grant.lease_until is None
    assert grant.needs_reauthorization is False
    assert grant.scopes == ["profile:read"]


def test_giving_up_spares_newer_tokens(identity):
    """A token that was refused says nothing about those that came since."""
    make_grant(identity)

    def refused_after_a_sign_in(token):
        if token == Secret("at-1"):
            grants.store(identity, SIGNED_IN)
        raise AccessTokenRejected("refused")

    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        tokens.Reader(identity).read(refused_after_a_sign_in)
    assert heard == []
    assert access_token_for(identity).reveal() == "at-new"


@pytest.mark.parametrize(
    ("environment", "error"),
    [("test", ReauthorizationNeeded), ("live", ConfigurationError)],
    ids=["without a grant", "of the other environment"],
)
def test_no_call_is_made_without_a_token_of_this_site(service, environment, error):
    """A live person's token is never sent with the credentials of a test application."""
    identity = make_identity(make_user(), environment=environment)
    if environment == "live":
        make_grant(identity)
    with pytest.raises(error):
        access_token_for(identity)
    assert service.requests == []


def test_inside_a_transaction_only_a_good_token_is_returned(
    service,
    identity,
    django_assert_num_queries,
):
    """A rollback would lose the new tokens, and the service has spent the old one.

    A token with life left costs one query and no call.
    """
    make_grant(identity)
    with django_assert_num_queries(1):
        assert access_token_for(identity).reveal() == "at-0"
    with transaction.atomic():
        assert access_token_for(identity).reveal() == "at-0"
    TokenGrant.objects.update(access_expires_at=timezone.now())
    with (
        transaction.atomic(),
        pytest.raises(RuntimeError, match="before the transaction begins"),
    ):
        access_token_for(identity)
    assert service.requests == []
    assert TokenGrant.objects.get().lease_until is None
    assert access_token_for(identity).reveal() == "at-1"


def test_the_lease_is_one_callers(service, identity, monkeypatch):
    """Of two who read the grant at the same moment, and not after a failure since.

    Nobody waits without end for one who does not give it back.
    """
    monkeypatch.setattr(tokens, "LONGEST_WAIT", 0.1)
    expired(identity)
    first, second = TokenGrant.objects.get(), TokenGrant.objects.get()
    assert grants.lease(first)
    assert not grants.lease(second)
    assert not grants.lease(TokenGrant.objects.get())
    with pytest.raises(RefreshPending):
        access_token_for(identity)
    TokenGrant.objects.update(
        lease_until=None,
        retry_at=timezone.now() + timedelta(seconds=30),
    )
    assert not grants.lease(second)
    with pytest.raises(RefreshPending):
        access_token_for(identity)

    assert service.refresh_tokens == []


def test_a_missing_key_ends_nothing(service, identity, caplog):
    """It is the site's fault: an ERROR says what to do, and all goes on when the key is back."""
    expired(identity)
    before = TokenGrant.objects.values().get()
    lost = service.settings(ENCRYPTION_KEYS=["another key, sixteen long"])
    unreadable = pytest.raises(SealedValueUnreadable)
    with announced() as heard, override_settings(DJANGO_IDENTITY=lost), unreadable:
        access_token_for(identity)
    assert TokenGrant.objects.values().get() == before
    assert heard == []
    assert service.requests == []
    identity.refresh_from_db()
    assert identity.kyc_level == "level_2"
    [line] = [each for each in caplog.records if each.levelno == logging.ERROR]

    assert line.event == "identity.grant.unreadable"
    assert "put the former key back into ENCRYPTION_KEYS" in line.getMessage()
    assert access_token_for(identity).reveal() == "at-1"
