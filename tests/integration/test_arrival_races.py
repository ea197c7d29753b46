"""Sign-ins, withdrawals and re-fetches of one person at the same moment, on the real database.

``RACES`` sets the number of rounds: one at a landing, twenty before a release.
"""

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from django_identity.exceptions import IdentityError
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.minute import refetch
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.concurrency import at_once
from tests.deliveries import event_body, post
from tests.sign_in import begin, come_back, is_signed_in, sign_in

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

RACES = int(os.environ.get("RACES", "1"))
REVOKED, DELETION = "consent.revoked", "data.deletion_requested"
#: Longer ago than the clocks may differ.
LATE = timedelta(minutes=10)
LONGEST_PAUSE = 0.06


def serial_end(events: dict[str, timedelta]) -> str:
    """What is left in every order of arrival. The events' ages are from the press of the button.

    A deletion always counts. A revocation that is older than the sign-in is superseded by it.
    """
    if DELETION in events:
        return "erased"
    return "revoked" if events.get(REVOKED, LATE) < LATE else "granted"


def end() -> str:
    """What is left here, after the erasures."""
    erasure.retry_pending()
    if LinkedIdentity.objects.filter(consent=Consent.GRANTED).exists():
        assert TokenGrant.objects.exists()
        assert StoredClaim.objects.exclude(valid_until=None).exists()
        return "granted"
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.exclude(valid_until=None).exists()
    return "revoked" if LinkedIdentity.objects.exists() else "erased"


def start_over() -> None:
    for model in (ErasureReceipt, WebhookEvent, LinkedIdentity, User):
        model.objects.all().delete()


class Race:
    """One sign-in, with what is delivered and fetched meanwhile."""

    def __init__(self, events: dict[str, timedelta], *, is_known: bool) -> None:
        self.browser, self.events, self.seen = Client(), events, 0
        self.identity = None
        if is_known:
            sign_in(Client())
            self.identity = LinkedIdentity.objects.select_related("user").get()
        self.state = begin(self.browser)
        self.is_busy, self.is_over = False, threading.Event()

    def run(self) -> None:
        callers = [
            self._sign_in,
            *(self._delivery(*event) for event in self.events.items()),
        ]
        if self.identity is not None:
            callers.append(self._refetch)
        random.shuffle(callers)
        at_once([self._after_a_moment(each) for each in callers])
        if self.is_busy and serial_end(self.events) == "granted":
            # The database was busy in each try, and the person presses the button again.
            sign_in(self.browser)

    @staticmethod
    def _after_a_moment(call: Callable[[], object]) -> Callable[[], object]:
        pause = random.uniform(0, LONGEST_PAUSE)
        return lambda: (time.sleep(pause), call())

    def _sign_in(self) -> None:
        try:
            self.is_busy = come_back(self.browser, self.state).status_code == 503
        finally:
            self.is_over.set()

    def _refetch(self) -> None:
        assert self.identity is not None
        # On REPEATABLE READ the database itself says that the row has changed.
        with suppress(IdentityError, OperationalError):
            refetch.fetch(self.identity)

    def _delivery(self, event_type: str, age: timedelta) -> Callable[[], None]:
        body = event_body(event_type, at=timezone.now() - age)

        def deliver() -> None:
            while post(body).status_code != 200:
                """The service delivers again."""
            # From the answer on, nobody sees the consent granted that it ended.
            granted = LinkedIdentity.objects.filter(consent=Consent.GRANTED)
            while serial_end({event_type: age}) != "granted":
                self.seen += granted.exists()
                if self.is_over.wait(0.005):
                    break

        return deliver


@pytest.mark.parametrize("before", ["new", "known"])
@pytest.mark.parametrize(
    "events",
    [{REVOKED: timedelta()}, {DELETION: timedelta()}, {REVOKED: timedelta(), DELETION: timedelta()},
     {REVOKED: LATE}, {DELETION: LATE}],
    ids=["revoked", "deletion", "both", "revoked late", "deletion late"],
)  # fmt: skip
def test_the_end_is_the_serial_one(site, events, before):
    """None is lost, none is seen granted after the answer, and each event has its outcome."""
    wanted, lost, seen = serial_end(events), 0, 0
    for _ in range(RACES):
        race = Race(events, is_known=before == "known")
        race.run()
        ends, signed_in = end(), is_signed_in(race.browser)
        # A refused sign-in takes back what it made, so a new person has no row to revoke.
        fits = ends == wanted or (before, ends, wanted) == ("new", "erased", "revoked")
        lost += not fits or signed_in != (wanted == "granted")
        seen += race.seen
        assert not WebhookEvent.objects.filter(outcome="").exists()
        start_over()
    assert (lost, seen) == (0, 0)


def test_two_sign_ins_of_a_new_person_make_one_account(site):
    for _ in range(RACES):
        browsers = [Client(), Client()]
        states = [begin(each) for each in browsers]
        at_once(
            [
                lambda browser=browser, state=state: (
                    come_back(browser, state).status_code
                )
                for browser, state in zip(browsers, states, strict=True)
            ]
        )
        assert User.objects.count() == 1
        assert LinkedIdentity.objects.get().consent == Consent.GRANTED
        assert all(map(is_signed_in, browsers))
        start_over()
