"""What a sign-up or a link left when its process died between the two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.models import ProtectedError
from django.db.models.signals import pre_delete
from django.test import Client
from django.utils import timezone

from django_identity.lifecycle import sign_in, unfinished, upkeep
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    WebhookEvent,
)
from tests import sign_in as browsing
from tests.databases import dangling, pointed_at
from tests.deliveries import SECRET, deliver
from tests.factories import make_event, make_identity, make_user
from tests.fake_service import FakeService

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
Change = Callable[[User], object]


def left(
    user: User,
    *,
    ago: timedelta = HOUR + MINUTE,
    subject: str = "subject-left",
    **fields: Any,
) -> LinkedIdentity:
    """An identity that only the first step has written, and that long ago."""
    empty = {
        "consent": Consent.REVOKED,
        "scopes": [],
        "kyc_level": "",
        "kyc_status": "",
        "kyc_said_at": None,
        "credential_expires_at": None,
        **fields,
    }
    identity = make_identity(user, subject=subject, **empty)
    LinkedIdentity.objects.filter(pk=identity.pk).update(
        created_at=timezone.now() - ago
    )
    identity.refresh_from_db()
    assert identity.was_never_granted
    return identity


def sign_up_account(username: str = "left") -> User:
    return User.objects.create_user(username)


def make_old() -> None:
    long_ago = timezone.now() - HOUR - MINUTE
    LinkedIdentity.objects.update(created_at=long_ago)
    WebhookEvent.objects.update(received_at=long_ago)


def die(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
    """The process ends in the second step, when it looks for events."""
    if sql.startswith("SELECT") and "webhookevent" in sql:
        raise SystemExit
    return execute(sql, parameters, many, context)


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    return service


def test_it_lasts_as_long_as_a_sign_in_may() -> None:
    assert timedelta(seconds=sign_in.SIGN_IN_LIFETIME) == unfinished.LONGEST_SIGN_IN


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_deletion_during_a_sign_up_that_a_crash_cut_off(
    site: FakeService, *, is_deleted: bool
) -> None:
    """It found nobody. The account goes all the same, and the deletion has its receipt."""
    browser = Client()
    state = browsing.begin(browser)
    if is_deleted:
        deliver("data.deletion_requested", subject=site.subject)
    with connection.execute_wrapper(die), pytest.raises(SystemExit):
        browsing.come_back(browser, state)
    assert (LinkedIdentity.objects.count(), User.objects.count()) == (1, 1)
    upkeep.tend()
    assert (LinkedIdentity.objects.count(), User.objects.count()) == (1, 1)
    make_old()
    upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.filter(is_active=True).exists()
    receipts = ErasureReceipt.objects.all()
    assert [each.erased_at is not None for each in receipts] == [True] * is_deleted
    assert [each.outcome for each in WebhookEvent.objects.all()] == [
        "applied"
    ] * is_deleted


def test_the_person_can_sign_up_again_after_that(site: FakeService) -> None:
    left(sign_up_account(), subject=site.subject)
    upkeep.tend()
    browser = Client()
    browsing.sign_in(browser)
    assert browsing.is_signed_in(browser)


@pytest.mark.parametrize("ago", [timedelta(0), HOUR - MINUTE])
def test_a_sign_in_that_may_still_go_on_is_left(ago: timedelta) -> None:
    left(sign_up_account(), ago=ago)
    upkeep.tend()
    assert LinkedIdentity.objects.exists()


def give_password(user: User) -> None:
    user.set_password("a password")
    user.save()


def change(**columns: Any) -> Change:
    return lambda user: User.objects.filter(pk=user.pk).update(**columns)


@pytest.mark.parametrize(
    ("reason", "meanwhile"),
    [
        ("password", give_password),
        ("staff", change(is_staff=True)),
        ("staff", change(is_superuser=True)),
        ("inactive", change(is_active=False)),
        ("used", change(last_login=timezone.now())),
    ],
    ids=["a password", "staff", "a superuser", "disabled", "signed in"],
)
def test_an_account_that_has_become_somebodys_stays(
    reason: str, meanwhile: Change, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the link goes, once, and the log says why the account stays."""
    caplog.set_level("INFO")
    user = sign_up_account()
    left(user)
    meanwhile(user)
    upkeep.tend()
    upkeep.tend()
    assert not LinkedIdentity.objects.filter(subject="subject-left").exists()
    assert User.objects.filter(pk=user.pk).exists()
    lines = [
        each for each in caplog.records if each.event == "identity.sign_in.taken_back"
    ]
    assert [each.account for each in lines] == [f"kept:{reason}"]
    assert "subject-left" not in caplog.text


@pytest.mark.parametrize("via", [LinkedVia.OAUTH, LinkedVia.CONNECT])
def test_an_account_that_was_there_before_stays(via: LinkedVia) -> None:
    left(make_user(), account_made=False, linked_via=via)
    upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert User.objects.exists()


def test_a_deletion_of_an_older_account_takes_the_link_with_a_receipt() -> None:
    """What a normal erasure keeps, this one keeps too."""
    identity = left(make_user(), account_made=False)
    empty = {"event_id": "", "subject": "", "payload": None, "outcome": "ignored"}
    received_at = identity.created_at - MINUTE
    make_event(identity, "data.deletion_requested", received_at=received_at, **empty)
    upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert ErasureReceipt.objects.get().account_kept == "older"
    assert User.objects.exists()


def test_its_events_lose_their_content() -> None:
    identity = left(sign_up_account())
    make_event(identity, "claim.issued")
    upkeep.tend()
    row = WebhookEvent.objects.get()
    assert (row.subject, row.payload, row.event_id) == ("", None, "")


@contextmanager
def protected(row: User) -> Iterator[None]:
    """A rule of the site protects the accounts, by this row."""

    def protect(**_signal: object) -> None:
        raise ProtectedError("There are rows", {row})

    pre_delete.connect(protect, sender=User)
    yield
    pre_delete.disconnect(protect, sender=User)


def test_what_the_site_protects_stays_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    user = sign_up_account()
    left(user)
    with protected(user):
        upkeep.tend()
        upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert User.objects.exists()
    troubles = [each for each in caplog.records if each.levelname == "ERROR"]
    assert [each.event for each in troubles] == ["identity.erasure.failed"]
    assert [each.models for each in troubles] == ["auth.User"]


def test_what_only_the_database_protects_stays_too() -> None:
    """Some look at the commit alone."""
    user = sign_up_account()
    left(user)
    with pointed_at(user):
        upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert User.objects.exists()


def test_a_row_that_points_at_nobody_protects_no_account() -> None:
    """Else its address would be taken for good."""
    left(sign_up_account())
    with dangling():
        upkeep.tend()
    assert not User.objects.exists()


def test_one_that_cannot_be_taken_back_holds_up_nobody() -> None:
    """It has its turn again."""
    left(sign_up_account("first"), subject="subject-1")
    left(sign_up_account("second"), subject="subject-2")
    failed: list[str] = []

    def fail_once(
        execute: Any, sql: str, parameters: Any, many: bool, context: Any
    ) -> Any:
        if sql.startswith("DELETE") and "linkedidentity" in sql and not failed:
            failed.append(sql)
            raise OperationalError("lock wait timeout exceeded")
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(fail_once):
        upkeep.tend()
    assert LinkedIdentity.objects.count() == 1
    upkeep.tend()
    assert (LinkedIdentity.objects.count(), User.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    "fields",
    [{"revoked_at": timezone.now()}, {"consent": Consent.GRANTED}],
    ids=["revoked", "granted"],
)
def test_what_was_ever_granted_stays(fields: dict[str, Any]) -> None:
    identity = make_identity(
        sign_up_account(), **{"consent": Consent.REVOKED, **fields}
    )
    LinkedIdentity.objects.filter(pk=identity.pk).update(
        created_at=timezone.now() - 9 * HOUR
    )
    upkeep.tend()
    assert LinkedIdentity.objects.exists()


def test_a_stop_ends_it() -> None:
    left(sign_up_account())
    unfinished.take_back_old(stop=lambda: True)
    assert LinkedIdentity.objects.exists()


@pytest.fixture
def soft_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user model whose ``delete`` keeps the row, which its default manager may hide then."""

    def hide(user: User) -> None:
        User.objects.filter(pk=user.pk).update(is_active=False)

    monkeypatch.setattr(User, "delete", hide)


def fails_once() -> Callable[..., Any]:
    """The second step meets a deadlock when it looks for events, and is tried again."""
    failed: list[str] = []

    def execute(run: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and "webhookevent" in sql and not failed:
            failed.append(sql)
            raise OperationalError("deadlock found")
        return run(sql, *rest)

    return execute


@pytest.mark.usefixtures("soft_deletes")
def test_a_soft_delete_keeps_nobody_out(site: FakeService) -> None:
    """The row of the first attempt would have the person's address, and they would be refused."""
    browser = Client()
    with connection.execute_wrapper(fails_once()):
        browsing.sign_in(browser)
    assert browsing.is_signed_in(browser)
    assert User.objects.count() == 1


@pytest.mark.usefixtures("soft_deletes")
def test_a_soft_delete_leaves_no_account_of_a_crash() -> None:
    left(sign_up_account())
    upkeep.tend()
    assert not User.objects.exists()
