"""Promise 3 under way: death, revocation, sign-in and rollback in the middle of a refresh."""

import signal
from datetime import timedelta

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from django_identity.exceptions import ReauthorizationNeeded
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.said import tokens
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import LinkedIdentity, RevokedBy, TokenGrant
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer
from tests import concurrency
from tests.factories import make_identity, make_user, sealed
from tests.fake_service import FakeService, answer
from tests.lifecycle.grants import announced, expired, stored

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    return make_identity(make_user())


def test_two_hundred_callers_lead_to_one_refresh(service, identity):
    """Two hundred callers at once, in four processes, cost one call and all get its token."""
    expired(identity)
    target = "tests.lifecycle.process_calls:access_token"
    # The crowd keeps the machine busy: the service is given time to be heard.
    with override_settings(DJANGO_IDENTITY=service.settings(TIMEOUT=60)):
        processes = [
            concurrency.start(target, identity.pk, threads=50) for _ in range(4)
        ]
    assert concurrency.outcomes(*processes) == ["at-1"] * 200
    assert service.refresh_tokens == ["rt-0"]


def test_invalid_grant_after_a_sibling_won_is_no_end(service, identity):
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

    service.meanwhile["token"] = sibling_wins
    service.answers["token"] = answer(
        {"error": "invalid_grant"}, status="400 Bad Request"
    )
    with announced() as heard:
        assert access_token_for(identity).reveal() == "at-sibling"
    assert heard == []
    assert not TokenGrant.objects.get().needs_reauthorization


def test_a_dead_workers_lease_runs_out(service, identity):
    """Whoever comes next waits for the lease of a worker that died, then takes over."""
    expired(identity, lease_until=timezone.now() + timedelta(seconds=0.3))
    assert access_token_for(identity).reveal() == "at-1"
    assert TokenGrant.objects.get().lease_until is None


@pytest.mark.parametrize(
    ("moment", "number", "presented"),
    [("before", 1, 1), ("after", 1, 1), ("before", 2, 2), ("after", 2, 1)],
    ids=["before the lease", "before sending", "answered and not stored", "stored"],
)
def test_a_worker_killed_at_any_point_leaves_a_row_that_can_be_used(
    service,
    identity,
    moment,
    number,
    presented,
):
    """The token is presented again only if its answer was lost with the worker."""
    expired(identity)
    service.token = {"refresh_token": "rt-next"}
    target = "tests.lifecycle.process_calls:killed_access_token"
    killed = concurrency.start(target, identity.pk, moment, number)
    assert killed.exit_code() == -signal.SIGKILL
    sent = list(service.refresh_tokens)
    lease = TokenGrant.objects.get().lease_until
    assert lease is None or lease <= timezone.now() + tokens.LEASE
    TokenGrant.objects.update(lease_until=lease and timezone.now())
    # A service that takes a token once more whose answer was lost.
    service.refresh_tokens.clear()
    assert access_token_for(identity).reveal() == "at-1"
    sent += service.refresh_tokens
    assert sent == ["rt-0"] * presented
    assert stored(identity) == "rt-next"


def test_an_answer_lost_with_its_worker_ends_in_renewal_at_a_strict_service(
    service, identity
):
    """Where a token is taken once and never again, the person is asked, and nothing crashes."""
    expired(identity)
    target = "tests.lifecycle.process_calls:killed_access_token"
    concurrency.start(target, identity.pk, "before", 2).exit_code()
    TokenGrant.objects.update(lease_until=timezone.now())
    with announced() as heard, pytest.raises(ReauthorizationNeeded):
        access_token_for(identity)
    assert heard == [identity]
    assert service.refresh_tokens == ["rt-0", "rt-0"]


@pytest.mark.parametrize("meanwhile", ["revoked", "signed in", "revoked, signed in"])
def test_a_revocation_on_its_way_throws_the_answer_away(service, identity, meanwhile):
    """A grant that was deleted during the refresh does not come back; a new one's tokens stay."""
    expired(identity)
    signed_in = TokenAnswer(Secret("at-new"), Secret("rt-new"), 3600.0, None, None)

    def act() -> None:
        if "revoked" in meanwhile:
            with transaction.atomic():
                locked = LinkedIdentity.objects.locked(identity.subject_digest)
                withdrawal.revoke(locked, at=timezone.now(), by=RevokedBy.PERSON)
        if "signed in" in meanwhile:
            tokens.store(identity, signed_in)

    service.meanwhile["token"] = act
    if meanwhile == "revoked":
        with pytest.raises(ReauthorizationNeeded):
            access_token_for(identity)
        assert not TokenGrant.objects.exists()
    else:
        assert access_token_for(identity).reveal() == "at-new"
        assert stored(identity) == "rt-new"
    assert service.refresh_tokens == ["rt-0"]


def test_without_autocommit_nothing_is_refreshed(service, identity):
    """A rollback would lose the new tokens, so the error comes before anything is sent."""
    expired(identity)
    transaction.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError, match="Autocommit is off"):
            access_token_for(identity)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert service.requests == []
