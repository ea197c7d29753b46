"""What the three journeys cost the database, and a service that is away.

A lock (``SELECT … FOR UPDATE``) is not counted.
"""

import random
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_identity.event_types import KINDS, Effect
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity
from tests.deliveries import deliver
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.lifecycle.refetches import (
    DOWN,
    all_refetched,
    answer_everybody,
    make_due,
    make_many_due,
)
from tests.lifecycle.test_key_sets import time_passes
from tests.sign_in import begin, come_back, sign_in

pytestmark = pytest.mark.django_db(transaction=True)

TRANSACTION = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
CLAIMS = {
    "age_over_18": True,
    "kyc_verified": {"verified": True},
    "unique_human": True,
    "country_resident": "NG",
}


def statements(call, *, locks):
    """The statements of ``call`` without its locks. On SQLite a lock looks like any SELECT."""
    with CaptureQueriesContext(connection) as captured:
        call()
    sent = [each["sql"] for each in captured if not each["sql"].startswith(TRANSACTION)]
    plain = [sql for sql in sent if "FOR UPDATE" not in sql]
    if connection.features.has_select_for_update:
        assert len(sent) - len(plain) == locks
        return len(plain)
    return len(plain) - locks


def test_a_callback_costs_a_bounded_number_of_queries(service):
    """One locks identity and user. Four are Django's: the session's three, and the last login.

    The started sign-in costs three: read, claimed, completed. The claims two: read, written. The
    others: the grant, the events, the identity. A new person has two more locks, and no claims to
    read, and costs five more: the row of the subject, a free address, a free name, the account, the
    identity.
    """
    service.disclosed = CLAIMS
    for locks, most in ((3, 16), (1, 12)):
        browser = Client()
        state = begin(browser)
        assert (
            statements(lambda at=(browser, state): come_back(*at), locks=locks) <= most
        )


def test_a_callback_locks_the_account_with_its_identity(service):
    """Whoever disables the account meanwhile comes before the sign-in, or after it."""
    make_identity(make_user())
    browser = Client()
    state = begin(browser)
    with CaptureQueriesContext(connection) as captured:
        come_back(browser, state)
    locks = [each["sql"] for each in captured if "FOR UPDATE" in each["sql"]]
    if connection.features.has_select_for_update:
        assert len(locks) == 1
        assert "auth_user" in locks[0]
        assert locks[0].endswith("FOR UPDATE")


@pytest.mark.parametrize("event_type", sorted(KINDS))
def test_an_event_costs_a_bounded_number_of_queries(handled, event_type):
    """Also of somebody with four claims, tokens and a handler; for nobody it is a few less.

    One that takes nothing away costs five with its locks, and so does a rejection.
    """
    handled("claim.issued")
    identity = make_identity(make_user(), scopes=["kyc:read", "claims:read"])
    make_grant(identity)
    for claim_type, value in CLAIMS.items():
        make_claim(identity, claim_type, value)
    is_erasure = KINDS[event_type].effect is Effect.ERASE
    most = 3 if KINDS[event_type].effect in (Effect.REJECT, Effect.REFETCH) else 10
    if is_erasure:
        # Looks for what only the commit would refuse.
        most += {"sqlite": 6, "postgresql": 2}.get(connection.vendor, 0)
        # MySQL does not tell the receipt's key.
        most += not connection.features.can_return_rows_from_bulk_insert
    locks = 5 if is_erasure else 2

    assert statements(lambda: deliver(event_type), locks=locks) <= most
    # Two looks for the identity, with the row of the subject between them.
    assert statements(lambda: deliver(event_type, subject="nobody"), locks=3) <= 3


def test_a_gated_request_costs_a_bounded_number_of_queries(service):
    """The session, the identity with its user, and the claims, behind any number of gates."""
    service.disclosed = CLAIMS
    browser = Client()
    sign_in(browser)

    def request():
        assert browser.get("/gated/").content == b"in"

    assert statements(request, locks=0) == 3


# A service that is away costs no due row its turn, and nobody rushes at it when it is back


def a_minute(clock):
    """What one message does, each minute."""
    clock.advance(minutes=1)
    time_passes(60)
    return upkeep.refetch_for_a_minute()


@pytest.mark.parametrize("people", [1, 12])
def test_ten_minutes_cost_few_calls_and_nobody_a_turn(service, identity_clock, people):
    """It is called twice a minute at most; a third of the people is served a minute later."""
    make_many_due(people)
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
        last_error="",
        credential_issued_at__isnull=False,
    )
    assert served.count() == 30 - len(odd)
