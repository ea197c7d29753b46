"""Sign-ins, withdrawals, re-fetches, codes and refreshes at the same moment, on the real database.

``RACES`` sets the number of rounds: one at a landing, twenty before a release. Death, revocation
and sign-in in the middle of a refresh: ``tests.interleavings``.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections, transaction
from django.test import Client, override_settings
from django.utils import timezone

from django_identity.exceptions import IdentityError
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.minute import refetch
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import (
    ConnectRedemption,
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests import concurrency
from tests.concurrency import at_once
from tests.databases import on_postgresql
from tests.deliveries import event_body, post
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.lifecycle import process_calls
from tests.lifecycle.grants import expired
from tests.lifecycle.test_events import linked
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import PASTED, browser_of, hand_in

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

RACES = int(os.environ.get("RACES", "1"))
REVOKED, DELETION = "consent.revoked", "data.deletion_requested"
LONGEST_PAUSE = 0.06


def end() -> str:
    """What is left here, after the erasures."""
    pending_erasures.retry()
    assert not LinkedIdentity.objects.filter(consent=Consent.GRANTED).exists()
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.exclude(valid_until=None).exists()
    return "revoked" if LinkedIdentity.objects.exists() else "erased"


def start_over() -> None:
    for model in (ErasureReceipt, WebhookEvent, LinkedIdentity, User):
        model.objects.all().delete()


def after_a_moment(call: Callable[[], object]) -> Callable[[], object]:
    pause = random.uniform(0, LONGEST_PAUSE)
    return lambda: (time.sleep(pause), call())


def refetched(identity: LinkedIdentity) -> None:
    # On REPEATABLE READ the database itself says that the row has changed.
    with suppress(IdentityError, OperationalError):
        refetch.fetch(identity)


def delivered(body: bytes) -> None:
    while post(body).status_code != 200:
        """The service delivers again."""


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("types", [[REVOKED], [DELETION], [REVOKED, DELETION]])
def test_the_end_is_the_serial_one(site, types, is_known):
    """A sign-in beside what ends it, and a re-fetch: none is lost, and each has its outcome.

    A new person may have no row to revoke: a refused sign-in leaves none.
    """
    wanted = "erased" if DELETION in types else "revoked"
    for _ in range(RACES):
        browser, callers = Client(), []
        if is_known:
            sign_in(Client())
            identity = LinkedIdentity.objects.select_related("user").get()
            callers.append(partial(refetched, identity))
        callers.append(partial(come_back, browser, begin(browser)))
        bodies = [event_body(each, at=timezone.now()) for each in types]
        callers += [partial(delivered, body) for body in bodies]
        random.shuffle(callers)

        at_once([after_a_moment(each) for each in callers])

        assert end() in ({wanted} if is_known else {wanted, "erased"})
        assert not is_signed_in(browser)
        assert not WebhookEvent.objects.filter(outcome="").exists()
        start_over()


def test_two_sign_ins_of_a_new_person_make_one_account(site):
    for _ in range(RACES):
        browsers = [Client(), Client()]
        at_once([partial(come_back, each, begin(each)) for each in browsers])
        assert User.objects.count() == 1
        assert LinkedIdentity.objects.get().consent == Consent.GRANTED
        assert all(map(is_signed_in, browsers))
        start_over()


def test_an_impatient_person_sends_the_code_once(service):
    """The same form four times at once: one redemption. The others look at the account."""
    user = make_user(email="other@example.org")
    service.meanwhile["request"] = lambda: time.sleep(0.2)
    responses = at_once([lambda: hand_in(browser_of(user), PASTED)] * 4)
    assert {302} <= {each.status_code for each in responses} <= {302, 409}
    assert service.calls("request") == 1
    assert LinkedIdentity.objects.count() == ConnectRedemption.objects.count() == 1
    assert hand_in(browser_of(user), PASTED)["Location"] == "/identity/connected/"


def test_two_people_bring_one_subject(service):
    """Two codes of one subject, by two users at once: one is linked, the other is told no."""
    presses = [
        lambda: hand_in(browser_of(make_user("ada")), "CNX-AAAA-1111"),
        lambda: hand_in(browser_of(make_user("eve")), "CNX-BBBB-2222"),
    ]
    statuses = sorted(response.status_code for response in at_once(presses))
    assert statuses == [302, 403]
    assert LinkedIdentity.objects.count() == 1


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    return make_identity(make_user())


def test_two_hundred_callers_lead_to_one_refresh(service, identity):
    """Two hundred callers at once, in four processes, cost one call and all get its token."""
    expired(identity)
    call = process_calls.access_token
    # The crowd keeps the machine busy: the service is given time to be heard.
    with override_settings(DJANGO_IDENTITY=service.settings(TIMEOUT=60)):
        tokens = concurrency.in_processes(4, call, identity.pk, threads=50)
    assert tokens == ["at-1"] * 200
    assert service.refresh_tokens == ["rt-0"]


def test_a_dead_workers_lease_runs_out(service, identity):
    """Whoever comes next waits for the lease of a worker that died, then takes over."""
    expired(identity, lease_until=timezone.now() + timedelta(seconds=0.3))
    assert access_token_for(identity).reveal() == "at-1"
    assert TokenGrant.objects.get().lease_until is None


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


CALLERS = 4  # of the two connections that the pooler has
EACH = 30


@pytest.fixture
def _pooled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New connections, which is what other threads open, are the pooler's."""
    connection.ensure_connection()
    with monkeypatch.context() as patch:
        patch.setitem(
            connections.settings["default"],
            "PORT",
            os.environ["POOLER_PORT"],
        )
        yield
    with (
        connection.cursor() as cursor
    ):  # the pooler's own, which would keep the database in use
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )


@pytest.mark.server
@on_postgresql
@pytest.mark.usefixtures("_pooled")
def test_every_event_is_taken_in_behind_a_pooler():
    """Though no connection knows what another one has met."""
    linked()
    answers = at_once([_deliveries] * CALLERS)
    assert [set(statuses) for statuses in answers] == [{200}] * CALLERS
    applied = WebhookEvent.objects.filter(outcome=EventOutcome.APPLIED)
    assert applied.count() == CALLERS * EACH


def _deliveries() -> list[int]:
    return [post(event_body("claim.issued")).status_code for _ in range(EACH)]
