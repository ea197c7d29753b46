"""A service that is away costs no due row its turn, and nobody rushes at it when it is back."""

import random
from collections import Counter
from datetime import timedelta

import pytest

from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity
from tests.lifecycle.published_keys import time_passes
from tests.lifecycle.refetches import DOWN, all_refetched, answer_everybody, make_due

pytestmark = pytest.mark.django_db(transaction=True)


def a_minute(clock):
    """What one message does, each minute."""
    clock.advance(minutes=1)
    time_passes(60)
    return upkeep.refetch_for_a_minute()


@pytest.mark.parametrize("people", [1, 12])
def test_ten_minutes_cost_few_calls_and_nobody_a_turn(service, identity_clock, people):
    """It is called twice a minute at most; a third of the people is served a minute later."""
    for number in range(people):
        make_due(number)
    service.answers.update(dict.fromkeys(("claims", "token", "jwks"), DOWN))
    for _ in range(10):
        a_minute(identity_clock)
    assert service.calls("claims") <= 2 * 10
    assert service.calls("jwks") <= 2 * 10
    service.answers.clear()
    answer_everybody(service)
    assert a_minute(identity_clock)[Refetched.STORED] >= people // 3
    ended = sum((a_minute(identity_clock) for _ in range(30)), Counter[Refetched]())
    assert due.count() == 0
    assert LinkedIdentity.objects.filter(last_error="").count() == people
    assert ended[Refetched.OUTAGE] == 0


def test_odd_persons_stop_nobody_else(service, identity_clock, monkeypatch):
    """Three for whom the service fails: all others are served within the hour."""
    monkeypatch.setattr(due, "random", random.Random(1))
    for number in range(30):
        make_due(number, ago=timedelta(hours=1, seconds=-number))
    odd = ("subject-0", "subject-1", "subject-2")
    answer_everybody(service, fails=lambda subject: subject in odd)
    for _ in range(60):
        identity_clock.advance(minutes=1)
        all_refetched()
    served = LinkedIdentity.objects.filter(
        last_error="", credential_issued_at__isnull=False
    )
    assert served.count() == 30 - len(odd)
