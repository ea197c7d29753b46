"""Events that meet somebody else's transaction half-way: what they waited for, they then see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from django_identity import signals
from django_identity.handlers import EventType
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.events import lock_subject
from django_identity.lifecycle.standing import standing_of
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
    digest,
)
from tests.databases import on_postgresql
from tests.deliveries import SECRET, deliver, event_body, post
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService
from tests.lifecycle.test_erasure import whole_database
from tests.lifecycle.test_events import linked, outcomes
from tests.lifecycle.waiting import PATIENCE, alone, delivered_during, until_waiting

pytestmark = pytest.mark.django_db(transaction=True)

Execute = Callable[..., Any]
WITHDRAWALS = ["consent.revoked", "data.deletion_requested"]
# What no event changes: to write it locks the row, and says nothing of the person.
LOCKED = {"refetch_failures": 3}


def lock_row() -> None:
    LinkedIdentity.objects.update(**LOCKED)


def arrive() -> None:
    """What a sign-in does with somebody new, as far as events are concerned."""
    lock_subject(digest("default", "test", "subject-1"))
    linked()


@pytest.mark.parametrize("event_type", WITHDRAWALS)
def test_a_withdrawal_waits_for_a_sign_in_and_ends_it(event_type: str) -> None:
    """The identity was nowhere to be seen when the event came in."""
    assert delivered_during(arrive, event_body(event_type)) == [200]
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert not TokenGrant.objects.exists()
    assert not standing_of(User.objects.get()).proven_claims()


def test_any_event_waits_for_a_sign_in() -> None:
    """And is filed as one of somebody who is linked."""
    assert delivered_during(arrive, event_body("kyc.rejected")) == [200]
    assert LinkedIdentity.objects.get().kyc_status == "rejected"
    assert outcomes() == ["applied"]


def test_an_event_of_a_sign_in_that_fails_is_of_nobody() -> None:
    """What was taken back was never there."""

    def refused() -> None:
        arrive()
        User.objects.all().delete()

    assert delivered_during(refused, event_body("consent.revoked")) == [200]
    assert set(outcomes()) <= {"ignored", "superseded"}
    assert WebhookEvent.objects.get().subject == "subject-1"


@pytest.fixture
def site(service: HostileService, settings: Any) -> HostileService:
    settings.DJANGO_IDENTITY = {"default": service.settings(WEBHOOK_SECRETS=[SECRET], TIMEOUT=20)}
    return service


@on_postgresql
@pytest.mark.parametrize("event_type", WITHDRAWALS)
def test_a_sign_in_waits_for_a_withdrawal(site: HostileService, event_type: str) -> None:
    """The event is stored and not yet committed when the person arrives."""
    stored, may_end = threading.Event(), threading.Event()

    def slowly(execute: Execute, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        if sql.startswith("INSERT") and "webhookevent" in sql:
            stored.set()
            may_end.wait(PATIENCE)
        return result

    def withdraw() -> HttpResponse:
        with connection.execute_wrapper(slowly):
            return post(event_body(event_type))

    browser = Client()
    state = begin(browser)
    with ThreadPoolExecutor(2) as pool:
        withdrawn = pool.submit(alone, withdraw)
        assert stored.wait(PATIENCE)
        arrived = pool.submit(alone, lambda: come_back(browser, state))
        until_waiting(1, unless=arrived.done)
        may_end.set()
        assert (withdrawn.result().status_code, arrived.result().status_code) == (200, 403)
    assert not LinkedIdentity.objects.exists()
    assert not TokenGrant.objects.exists()


def test_a_sign_in_of_somebody_known_waits_for_an_event(site: HostileService) -> None:
    """What the event says is newer than what the service answered, and stands."""
    assert sign_in(Client()).status_code == 302
    assert LinkedIdentity.objects.get().kyc_status == "verified"
    browser = Client()
    state = begin(browser)
    later = timezone.now() + timedelta(seconds=2)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert post(event_body("kyc.rejected", at=later)).status_code == 200
            arrived = pool.submit(alone, lambda: come_back(browser, state))
            until_waiting(1, unless=arrived.done)
        assert arrived.result().status_code == 302
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


@on_postgresql
def test_no_event_is_lost_to_a_sign_in_that_waited_for_its_row(site: HostileService) -> None:
    """The event left the row as it was, so the row does not tell the sign-in that it came.

    A rejection without a KYC scope changes nothing; the sign-in that brings the scope must see it.
    """
    assert sign_in(Client()).status_code == 302
    LinkedIdentity.objects.update(scopes=["profile:read"])
    looked, may_end = threading.Event(), threading.Event()

    def slowly(execute: Execute, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        if "FOR UPDATE" in sql and "linkedidentity" in sql:
            looked.set()
            may_end.wait(PATIENCE)
        return result

    later = timezone.now() + timedelta(seconds=2)

    def reject() -> HttpResponse:
        with connection.execute_wrapper(slowly):
            return post(event_body("kyc.rejected", at=later))

    browser = Client()
    state = begin(browser)
    with ThreadPoolExecutor(2) as pool:
        rejected = pool.submit(alone, reject)
        assert looked.wait(PATIENCE)
        arrived = pool.submit(alone, lambda: come_back(browser, state))
        until_waiting(1, unless=arrived.done)
        may_end.set()
        assert (rejected.result().status_code, arrived.result().status_code) == (200, 302)
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


@pytest.mark.parametrize("event_type", [*EventType])
def test_an_event_waits_for_the_row_and_applies(event_type: str) -> None:
    """Somebody else was changing it; what they changed stays."""
    identity = linked()
    before = {field: getattr(identity, field) for field in ("consent_changed_at", "refetch_due_at")}
    assert delivered_during(lock_row, event_body(event_type)) == [200]
    identity.refresh_from_db()
    assert outcomes() == ["applied"]
    assert identity.refetch_failures == LOCKED["refetch_failures"]
    assert {field: getattr(identity, field) for field in before} != before
    assert identity.last_event_digest == WebhookEvent.objects.get().event_digest


@pytest.mark.parametrize("event_type", sorted({*EventType} - {EventType.DATA_DELETION_REQUESTED}))
def test_an_event_waits_for_the_row_and_comes_too_late(event_type: str) -> None:
    """The one before it in the queue was newer."""
    linked()
    later = timezone.now() + timedelta(minutes=10)
    newer = {"consent_changed_at": later, "kyc_changed_at": later, "signed_in_at": later}

    def overtake() -> None:
        LinkedIdentity.objects.update(**newer)

    assert delivered_during(overtake, event_body(event_type)) == [200]
    assert outcomes() == ["superseded"]
    identity = LinkedIdentity.objects.get()
    assert {name: getattr(identity, name) for name in newer} == newer
    assert (identity.consent, identity.last_event_digest) == (Consent.GRANTED, "")
    assert TokenGrant.objects.exists()
    assert StoredClaim.objects.filter(revoked=False).exists()


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The kinds of what the site was told, by signals."""
    said: list[str] = []

    def of_event(sender: object, **_arguments: Any) -> None:
        said.append("event")

    def of_consent(sender: object, **_arguments: Any) -> None:
        said.append("revoked")

    signals.event_received.connect(of_event)
    signals.consent_revoked.connect(of_consent)
    yield said
    signals.event_received.disconnect(of_event)
    signals.consent_revoked.disconnect(of_consent)


@pytest.mark.parametrize("event_type", WITHDRAWALS)
def test_a_repeat_waits_for_the_first(told: list[str], event_type: str) -> None:
    """Which itself waits: one is stored and applied, and the site hears of one."""
    linked()
    body = event_body(event_type)
    assert delivered_during(lock_row, body, body, body) == [200] * 3
    assert outcomes() == ["applied"]
    assert told == ["event", "revoked"]
    assert ErasureReceipt.objects.count() == (event_type == "data.deletion_requested")


def test_an_event_waits_for_an_erasure_and_names_nobody() -> None:
    """It comes in while the person is being erased, and is emptied like those before it."""
    linked()
    bodies = [
        event_body(kind, provider="note-on-her") for kind in ("kyc.verified", "consent.granted")
    ]
    deliver("data.deletion_requested")
    assert delivered_during(erasure.retry_pending, *bodies) == [200] * 2
    assert WebhookEvent.objects.count() == 3
    held = whole_database()
    assert [value for value in ("subject-1", "note-on-her") if value in held] == []


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one writes there at a time")
def test_a_request_for_erasure_waits_for_an_account_that_goes() -> None:
    """Its user is gone by then: the receipt is of nobody here, and nothing failed."""
    user = linked().user
    assert delivered_during(user.delete, event_body("data.deletion_requested")) == [200]
    receipt = ErasureReceipt.objects.get()
    assert (receipt.user_id, receipt.subject) == (None, "subject-1")
    assert erasure.retry_pending() == 1
    assert "subject-1" not in whole_database()
