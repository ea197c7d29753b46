"""Promise 3: a rotating refresh token is never spent twice, and never lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.utils import timezone

from django_identity import conf, signals
from django_identity.exceptions import (
    MalformedAnswer,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceRefusal,
    ServiceTimeout,
    ServiceUnavailable,
)
from django_identity.lifecycle import consent, tokens
from django_identity.lifecycle.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service.messages import TokenAnswer
from tests import crowd
from tests.hostile import HostileService, answer, b64, html, http, reset, silent, truncated
from tests.records import make_grant, make_identity, make_user, sealed, unsealed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def identity(service: HostileService) -> LinkedIdentity:
    return make_identity(make_user())


def expired(identity: LinkedIdentity, **fields: Any) -> TokenGrant:
    past = timezone.now() - timedelta(seconds=1)
    return make_grant(identity, **{"access_expires_at": past, **fields})


def stored(identity: LinkedIdentity, column: str = "refresh_token") -> str:
    return unsealed(identity, column, getattr(TokenGrant.objects.get(), column))


def in_the_meantime(work: Callable[[], object]) -> Callable[[], None]:
    """``work`` in the service's thread, whose database connection ends with it."""

    def done() -> None:
        try:
            work()
        finally:
            connections.close_all()

    return done


@contextmanager
def announced() -> Iterator[list[LinkedIdentity]]:
    heard: list[LinkedIdentity] = []

    def hear(*, identity: LinkedIdentity, **_kwargs: object) -> None:
        heard.append(identity)

    signals.reauthorization_needed.connect(hear)
    try:
        yield heard
    finally:
        signals.reauthorization_needed.disconnect(hear)


def test_a_live_token_costs_one_query_and_no_call(
    service: HostileService, identity: LinkedIdentity, django_assert_num_queries: Any
) -> None:
    """A token with life left is used as it is."""
    make_grant(identity)
    with django_assert_num_queries(1):
        assert access_token_for(identity) == "at-0"
    assert service.requests == []


def test_a_refresh_stores_both_tokens(service: HostileService, identity: LinkedIdentity) -> None:
    """The rotated refresh token takes the place of the spent one."""
    expired(identity)
    assert access_token_for(identity) == "at-1"
    assert (stored(identity), service.refresh_tokens) == ("rt-1", ["rt-0"])
    grant = TokenGrant.objects.get()
    assert (grant.generation, grant.lease_until) == (2, None)
    assert access_token_for(identity) == "at-1"


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


def test_no_new_refresh_token_means_the_old_one_stays(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """An answer without a refresh token does not take the stored one away."""
    expired(identity)
    service.answers["token"] = {"access_token": "at-x", "expires_in": 3600}
    assert access_token_for(identity) == "at-x"
    assert stored(identity) == "rt-0"


def test_invalid_grant_is_final(service: HostileService, identity: LinkedIdentity) -> None:
    """The tokens are dropped, the site hears of it once, and the service is asked no more."""
    expired(identity)
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
    with announced() as heard:
        for _ in range(2):
            with pytest.raises(ReauthorizationNeeded):
                access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert grant.needs_reauthorization
    assert (grant.access_token, grant.refresh_token) == ("", "")
    assert (heard, service.calls("token")) == ([identity], 1)


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


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (answer({"error": "invalid_request"}, status="400 Bad Request"), ServiceRefusal),
        (answer({"error": "invalid_client"}, status="401 Unauthorized"), ServiceRefusal),
        (http(b"", status="429 Slow down", headers="Retry-After: 7\r\n"), RateLimited),
        (html("500 Oops"), ServiceUnavailable),
        (html("503 Oops"), ServiceUnavailable),
        (html(), MalformedAnswer),
        (answer({"access_token": "at"}), MalformedAnswer),
        (truncated, ServiceUnavailable),
        (reset, ServiceUnavailable),
        (silent, ServiceTimeout),
    ],
    ids=["invalid_request", "invalid_client", "429", "500", "503", "html", "half", "truncated",
         "reset", "silent"],
)  # fmt: skip
def test_what_is_not_invalid_grant_keeps_the_tokens(
    service: HostileService, identity: LinkedIdentity, bad: Any, error: type[Exception]
) -> None:
    """Whatever else goes wrong, nothing is dropped, and the same token is not sent again at once.

    When the pause is over the token is tried again.
    """
    expired(identity)
    service.answers["token"] = bad
    with pytest.raises(error):
        access_token_for(identity)
    assert stored(identity) == "rt-0"
    with pytest.raises(RefreshPending):
        access_token_for(identity)
    assert service.calls("token") == 1
    grant = TokenGrant.objects.get()
    assert grant.retry_at is not None
    assert grant.retry_at > timezone.now() + timedelta(seconds=5)
    TokenGrant.objects.update(retry_at=timezone.now())
    cache.clear()
    service.answers.clear()
    service.refresh_tokens.clear()
    assert access_token_for(identity) == "at-1"


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
    now = timezone.now()
    consent.revoke(identity.subject_digest, at=now, now=now)


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


def jwt(subject: str) -> str:
    return ".".join(b64(json.dumps(part).encode()) for part in ({}, {"sub": subject}, {}))


@pytest.mark.parametrize(
    "named",
    [
        {"user_id": "somebody-else"},
        {"user_id": "a", "sub": "b"},
        {"id_token": jwt("somebody-else")},
        {"access_token": jwt("somebody-else")},
        {"user_id": "subject-1", "access_token": jwt("somebody-else")},
    ],
    ids=["user_id", "two", "id_token", "access_token", "two tokens"],
)
def test_a_token_of_another_subject_is_refused(
    service: HostileService, identity: LinkedIdentity, named: dict[str, str]
) -> None:
    """A refresh never changes the subject: the answer is not stored, the grant is dead."""
    expired(identity)
    service.token = named
    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    grant = TokenGrant.objects.get()
    assert (grant.needs_reauthorization, grant.refresh_token) == (True, "")
    assert heard == [identity]


def test_an_unreadable_access_token_is_refreshed(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A sealed value that no key opens is treated as absent."""
    make_grant(identity)
    TokenGrant.objects.update(access_token="v1.00000000.bm90IG91cnM=")
    assert access_token_for(identity) == "at-1"


def test_an_unreadable_refresh_token_needs_reauthorization(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """It is no crash, the site hears of it once, and a key that comes back brings it back."""
    expired(identity)
    lost = {"default": {**service.settings(), "ENCRYPTION_KEYS": ["another key, sixteen long"]}}
    with announced() as heard, override_settings(DJANGO_IDENTITY=lost):
        for _ in range(2):
            with pytest.raises(ReauthorizationNeeded):
                access_token_for(identity)
    assert TokenGrant.objects.get().needs_reauthorization
    assert (heard, service.requests) == ([identity], [])
    assert access_token_for(identity) == "at-1"
    assert not TokenGrant.objects.get().needs_reauthorization


def test_a_rejected_token_is_refreshed_once(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A token that was refused before its time is replaced; a sibling's replacement is enough."""
    make_grant(identity)
    assert access_token_for(identity, rejected="at-0") == "at-1"
    assert access_token_for(identity, rejected="at-0") == "at-1"
    assert service.calls("token") == 1


@pytest.mark.parametrize(("lifetime", "margin"), [(3600.0, 60), (100.0, 10)])
def test_a_token_is_not_used_to_its_last_second(
    service: HostileService, identity: LinkedIdentity, lifetime: float, margin: int
) -> None:
    """Clocks differ and calls take time: a tenth of the life, a minute at most, is left over."""
    tokens.store(conf.application(), identity, TokenAnswer("at", "rt", lifetime, None, None))
    ends_in = (TokenGrant.objects.get().access_expires_at - timezone.now()).total_seconds()
    assert ends_in == pytest.approx(lifetime - margin, abs=2)


def test_no_grant_means_coming_again(service: HostileService, identity: LinkedIdentity) -> None:
    """An identity without a grant has no token, and no call is made for one."""
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    assert service.requests == []


def test_a_grant_that_nothing_used_is_kept_alive(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Under five days before its end it is refreshed, once; one that is in use is left alone."""
    now = timezone.now()
    grant = make_grant(
        identity,
        access_expires_at=now - timedelta(days=25),
        refresh_expires_at=now + timedelta(days=4),
    )
    assert tokens.keep_alive(identity)
    assert not tokens.keep_alive(identity)
    assert service.refresh_tokens == ["rt-0"]
    grant.refresh_from_db()
    assert grant.refresh_expires_at is not None
    assert grant.refresh_expires_at > now + timedelta(days=29)
    TokenGrant.objects.update(access_expires_at=now, refresh_expires_at=now + timedelta(days=4))
    assert not tokens.keep_alive(identity)


def test_a_held_token_is_not_printed(service: HostileService, identity: LinkedIdentity) -> None:
    """Neither the token nor what it was asked for stands in a ``repr``."""
    make_grant(identity, access_token="at-secret")
    assert "secret" not in repr(tokens.current(identity))
