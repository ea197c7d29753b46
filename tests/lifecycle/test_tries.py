"""Tries of codes in ten minutes: five for each user."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.exceptions import FlowError, InvalidConnectCode
from django_identity.lifecycle.arriving import connect
from django_identity.models import ConnectRedemption, Consent
from tests.concurrency import at_once
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.lifecycle.connect_codes import INVALID, redeem

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return make_user()


def use_up_tries(service: FakeService, user: User) -> None:
    service.answers["request"] = INVALID
    for number in range(connect.MOST_TRIES):
        with pytest.raises(InvalidConnectCode):
            redeem(user, number)


def test_the_sixth_try_waits(service: FakeService, user: User) -> None:
    """Five codes in ten minutes are sent; the sixth is not, and says how long to wait."""
    use_up_tries(service, user)
    with pytest.raises(FlowError) as refused:
        redeem(user, 6)
    assert 590 <= refused.value.retry_after <= 600
    assert service.calls("request") == connect.MOST_TRIES
    assert not ConnectRedemption.objects.filter(outcome="").exists()


def test_tries_at_once_are_counted_too(service: FakeService, user: User) -> None:
    """However many codes are handed in at the same moment, five are sent."""
    service.answers["request"] = INVALID

    def outcome(number: int) -> str:
        try:
            redeem(user, number)
        except (InvalidConnectCode, FlowError) as error:
            return error.code
        return ""

    outcomes = at_once([partial(outcome, number) for number in range(12)])
    assert sorted(outcomes) == ["invalid_connect_code"] * 5 + ["too_many_tries"] * 7
    assert service.calls("request") == connect.MOST_TRIES


def test_a_refused_try_is_no_try(service: FakeService, user: User) -> None:
    """Somebody who must wait uses up nobody else's tries."""
    use_up_tries(service, user)
    for number in range(10, 20):
        with pytest.raises(FlowError):
            redeem(user, number)
    del service.answers["request"]
    assert redeem(make_user("bob"), 9).consent == Consent.GRANTED


def test_tries_are_free_again_after_their_time(
    service: FakeService, user: User
) -> None:
    """Ten minutes after each of them."""
    use_up_tries(service, user)
    ConnectRedemption.objects.update(expires_at=timezone.now())
    del service.answers["request"]
    assert redeem(user, 9).consent == Consent.GRANTED


def test_a_repeat_is_no_try(service: FakeService, user: User) -> None:
    """Handing the same code in again sends nothing, so it counts for nothing."""
    for _ in range(10):
        redeem(user)
    assert service.calls("request") == 1


@pytest.mark.parametrize(
    "nobody",
    [AnonymousUser(), User(username="new"), None],
    ids=["anonymous", "unsaved", "none"],
)
def test_a_code_of_nobody_is_not_sent(service: FakeService, nobody: Any) -> None:
    """It would be spent, and verify no account."""
    with pytest.raises(ValueError, match="user model"):
        redeem(nobody)
    assert service.calls("request") == 0
