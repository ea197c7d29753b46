"""A process is killed: between the two transactions of an event, and in that of a sign-up."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from django_identity.lifecycle.said import events
from django_identity.models import (
    Consent,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.concurrency import start
from tests.deliveries import event_body, post
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def killed_after(insert_into: str) -> Callable[..., Any]:
    """SIGKILL before the identity is read for the first time after this insert."""
    inserted: list[str] = []

    def execute(run: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if inserted and sql.startswith("SELECT") and "linkedidentity" in sql:
            os.kill(os.getpid(), signal.SIGKILL)
        if sql.startswith("INSERT") and insert_into in sql.split("(")[0]:
            inserted.append(sql)
        return run(sql, *rest)

    return execute


def post_and_die(body: bytes) -> int:
    with connection.execute_wrapper(killed_after("webhookevent")):
        return post(body).status_code


def sign_in_and_die() -> int:
    with connection.execute_wrapper(killed_after("linkedidentity")):
        return sign_in(Client()).status_code


def ends_killed(target: str, *arguments: bytes) -> None:
    assert start(f"{__name__}:{target}", *arguments).exit_code() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("event_type", "left"),
    [
        ("consent.revoked", [(Consent.REVOKED, 1)]),
        ("data.deletion_requested", []),
    ],
)
@pytest.mark.parametrize("by", ["the service", "upkeep"])
def test_between_store_and_apply(
    site: FakeService, event_type: str, left: list[tuple[str, int]], by: str
) -> None:
    """The event is there without an outcome. It is applied when it comes again, or by upkeep."""
    browser = Client()
    sign_in(browser)
    body = event_body(event_type)
    ends_killed("post_and_die", body)
    row = WebhookEvent.objects.get()
    assert (row.outcome, row.subject) == ("", "subject-1")
    assert row.next_attempt_at is not None
    for _ in range(2):
        if by == "upkeep":
            events.apply(row)
        else:
            assert post(body).status_code == 200
    row.refresh_from_db()
    assert row.outcome == "applied"
    assert not is_signed_in(browser)
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.exclude(valid_until=None).exists()
    links = LinkedIdentity.objects.values_list("consent", "session_epoch")
    assert list(links) == left


def test_in_the_middle_of_a_sign_up(site: FakeService) -> None:
    """Nothing is left of it, and the person can come again."""
    ends_killed("sign_in_and_die")
    for model in (User, LinkedIdentity, TokenGrant, StoredClaim):
        assert not model._default_manager.exists()
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)
