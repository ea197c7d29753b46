"""Tries of codes in ten minutes: five for each user."""

from functools import partial

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.exceptions import FlowError, InvalidConnectCode
from django_identity.lifecycle.arriving import connect
from django_identity.models import ConnectRedemption, Consent
from tests.concurrency import at_once
from tests.factories import make_user
from tests.fake_service import refusal

pytestmark = pytest.mark.django_db(transaction=True)

INVALID = refusal("INVALID_CONNECT_CODE")


def redeem(user, number=0):
    return connect.redeem(f"CNX-AB12-{number:04}", user=user)


def tried(user, number):
    try:
        redeem(user, number)
    except (InvalidConnectCode, FlowError) as error:
        return error.code
    return ""


def test_five_tries_are_sent_and_the_sixth_waits(service):
    """It says how long, and uses up nobody else's. Ten minutes after each they are free again."""
    user = make_user()
    service.answers["request"] = INVALID
    for number in range(connect.MOST_TRIES):
        assert tried(user, number) == "invalid_connect_code"
    for number in range(6, 16):
        with pytest.raises(FlowError) as refused:
            redeem(user, number)
        assert 590 <= refused.value.retry_after <= 600
    assert service.calls("request") == connect.MOST_TRIES
    assert not ConnectRedemption.objects.filter(outcome="").exists()

    del service.answers["request"]
    ConnectRedemption.objects.update(expires_at=timezone.now())
    assert redeem(user, 20).consent == Consent.GRANTED


def test_tries_at_once_are_counted_too(service):
    """However many codes are handed in at the same moment, five are sent. Others have theirs."""
    service.answers["request"] = INVALID
    user = make_user()
    outcomes = at_once([partial(tried, user, number) for number in range(12)])
    assert sorted(outcomes) == ["invalid_connect_code"] * 5 + ["too_many_tries"] * 7
    assert service.calls("request") == connect.MOST_TRIES
    del service.answers["request"]
    assert redeem(make_user("bob"), 20).consent == Consent.GRANTED


@pytest.mark.parametrize(
    "nobody", [AnonymousUser(), User(username="new"), None], ids=["anonymous", "unsaved", "none"]
)  # fmt: skip
def test_a_code_of_nobody_is_not_sent(service, nobody):
    """It would be spent, and verify no account."""
    with pytest.raises(ValueError, match="user model"):
        redeem(nobody)
    assert service.calls("request") == 0
