"""Tries of codes in ten minutes: five for each user, fifty for each address."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import override_settings

from django_identity import conf
from django_identity.exceptions import InvalidConnectCode, TooManyTries
from django_identity.lifecycle.arrival import limits
from django_identity.models import ConnectRedemption, Consent
from tests.at_once import at_once
from tests.hostile import HostileService
from tests.lifecycle.redeeming import ADDRESS, INVALID, redeem
from tests.records import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return make_user()


def use_up_tries(service: HostileService, user: User, address: str = ADDRESS) -> None:
    service.answers["request"] = INVALID
    for number in range(limits.MOST_TRIES):
        with pytest.raises(InvalidConnectCode):
            redeem(user, number, address)


def test_the_sixth_try_waits(service: HostileService, user: User) -> None:
    """Five codes in ten minutes are sent; the sixth is not, and says how long to wait."""
    use_up_tries(service, user)
    with pytest.raises(TooManyTries) as refused:
        redeem(user, 6, "198.51.100.7")
    assert 590 <= refused.value.retry_after <= 600
    assert service.calls("request") == limits.MOST_TRIES
    assert not ConnectRedemption.objects.filter(outcome="").exists()


def test_tries_at_once_are_counted_too(service: HostileService, user: User) -> None:
    """However many codes are handed in at the same moment, five are sent."""
    service.answers["request"] = INVALID
    slow = {"default": {"BACKEND": "tests.slow_cache.SlowCache", "LOCATION": "tries at once"}}

    def outcome(number: int) -> str:
        try:
            redeem(user, number)
        except (InvalidConnectCode, TooManyTries) as error:
            return error.code
        return ""

    listening = {"default": service.settings(TIMEOUT=10)}
    with override_settings(DJANGO_IDENTITY=listening, CACHES=slow):
        outcomes = at_once([partial(outcome, number) for number in range(12)])
    assert sorted(outcomes) == ["invalid_connect_code"] * 5 + ["too_many_tries"] * 7
    assert service.calls("request") == limits.MOST_TRIES


def test_an_address_has_its_own_tries(service: HostileService, user: User) -> None:
    """Many accounts do not help a guesser; another address is another guesser."""
    for number in range(limits.MOST_TRIES_OF_NETWORK):
        limits.take(conf.application(), user=make_user(f"user-{number}"), address=ADDRESS)
    service.answers["request"] = INVALID
    with pytest.raises(TooManyTries) as refused:
        redeem(make_user("eve"), 7)
    assert refused.value.most == limits.MOST_TRIES_OF_NETWORK
    del service.answers["request"]
    assert redeem(make_user("bob"), 7, "198.51.100.7").identity.consent == Consent.GRANTED


def test_one_persons_tries_block_nobody_else(service: HostileService, user: User) -> None:
    """People of one household or school share an address."""
    use_up_tries(service, user)
    del service.answers["request"]
    assert redeem(make_user("bob"), 7).identity.consent == Consent.GRANTED


def test_a_refused_try_is_no_try(service: HostileService, user: User) -> None:
    """Somebody who must wait uses up nobody else's tries."""
    use_up_tries(service, user)
    for number in range(10, 20):
        with pytest.raises(TooManyTries):
            redeem(user, number, "198.51.100.7")
    del service.answers["request"]
    assert redeem(make_user("bob"), 9, "198.51.100.7").identity.consent == Consent.GRANTED


def test_tries_are_free_again_after_their_time(service: HostileService, user: User) -> None:
    """Ten minutes after the first of them, by the cache's own clock."""
    clock = {"default": {"BACKEND": "tests.clock_cache.ClockCache", "LOCATION": "tries"}}
    application = conf.application()
    with override_settings(CACHES=clock):
        cache.clear()
        for _ in range(limits.MOST_TRIES):
            limits.take(application, user=user, address=ADDRESS)
        cache.ahead = limits.WINDOW - 5
        with pytest.raises(TooManyTries):
            limits.take(application, user=user, address=ADDRESS)
        cache.ahead = limits.WINDOW + 5
        limits.take(application, user=user, address=ADDRESS)


def test_a_cache_that_fails_lets_people_through(
    service: HostileService, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    """It is better to verify somebody than nobody, and the log says it."""
    broken = {"default": {"BACKEND": "tests.service.broken_cache.BrokenCache"}}
    with override_settings(CACHES=broken):
        for _ in range(limits.MOST_TRIES + 1):
            limits.take(conf.application(), user=user, address=ADDRESS)
    assert "the cache does not answer" in caplog.text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "unknown", True),
    ],
)
def test_addresses_are_networks(service: HostileService, one: str, other: str, same: bool) -> None:
    """An IPv6 customer has a whole /64; nobody knows who an unknown address is."""
    application = conf.application()
    for _ in range(limits.MOST_TRIES_OF_NETWORK):
        limits.take(application, user=None, address=one)
    if same:
        with pytest.raises(TooManyTries):
            limits.take(application, user=None, address=other)
    else:
        limits.take(application, user=None, address=other)


def test_an_unknown_address_counts_for_nobody_signed_in(
    service: HostileService, user: User
) -> None:
    """Behind a Unix socket people do not use up each other's tries."""
    application = conf.application()
    for number in range(10):
        limits.take(application, user=make_user(f"user-{number}"), address="")


def test_keys_name_nobody(service: HostileService, user: User) -> None:
    """The cache learns neither user nor address."""
    taken = limits.take(conf.application(), user=user, address=ADDRESS)
    assert ADDRESS not in str(taken)
    assert len(taken) == 2
    assert str(user.pk) not in {part for name in taken for part in name.split(".")}


def test_a_repeat_is_no_try(service: HostileService, user: User) -> None:
    """Handing the same code in again sends nothing, so it counts for nothing."""
    for _ in range(10):
        redeem(user)
    assert service.calls("request") == 1
