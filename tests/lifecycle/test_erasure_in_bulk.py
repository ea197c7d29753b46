"""Many erasures at once, and one of somebody with many events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import ProtectedError
from django.test.utils import CaptureQueriesContext

from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.upkeep import follow_up
from django_identity.models import ErasureReceipt, WebhookEvent
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.lifecycle.test_sessions_meanwhile import begin
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def pending(count: int) -> list[User]:
    """So many people who asked for deletion, each with a session."""
    users = [make_user(f"user-{number}") for number in range(count)]
    for number, user in enumerate(users):
        make_identity(user, subject=f"subject-{number}", account_made=True)
        begin(user, f"{number:032}")
        deliver("data.deletion_requested", subject=f"subject-{number}")
    return users


def scans(captured: CaptureQueriesContext) -> int:
    """How often all sessions were read to look for their users."""
    sent = [query["sql"] for query in captured]
    return sum("session_data" in sql and "WHERE" not in sql for sql in sent)


def test_the_sessions_are_searched_once_for_all() -> None:
    """Whoever is erased, their sessions go, and nobody else's."""
    pending(4)
    begin(make_user("grace"), "g" * 32)
    with CaptureQueriesContext(connection) as captured:
        assert erasure.retry_pending() == 4
    assert scans(captured) == 1
    assert list(Session.objects.values_list("session_key", flat=True)) == ["g" * 32]
    counted = ErasureReceipt.objects.values_list("counts", flat=True)
    assert [counts["session"] for counts in counted] == [1] * 4


def test_a_stop_leaves_the_rest_pending() -> None:
    """A worker that shuts down ends after the erasure in hand, and leaves no session of it."""
    pending(3)
    for left in (2, 1):
        follow_up.retry_pending(stop=lambda: True)
        assert ErasureReceipt.objects.filter(erased_at=None).count() == left
        assert Session.objects.count() == left


def test_a_store_that_lists_no_sessions_is_not_searched(settings: Any) -> None:
    """Sessions in cookies end because the account is disabled."""
    pending(2)
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    with CaptureQueriesContext(connection) as captured:
        assert erasure.retry_pending() == 2
    assert not [query for query in captured if "django_session" in query["sql"]]


class InTheWay(IdentityPolicy):
    """A site whose orders refuse to go."""

    def erase_user(self, user: Any) -> None:
        if user.last_name == "Protected":
            raise ProtectedError("Cannot delete ada@example.org", {LogEntry(pk=1)})
        super().erase_user(user)


@pytest.fixture
def orders(settings: Any) -> None:
    given = {**settings.DJANGO_IDENTITY["default"], "POLICY": f"{__name__}.InTheWay"}
    settings.DJANGO_IDENTITY = {"default": given}


@pytest.mark.usefixtures("orders")
def test_one_failure_keeps_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """The receipt and the log name the model whose rows are in the way, and nobody."""
    first, *_ = pending(3)
    User.objects.filter(pk=first.pk).update(last_name="Protected")
    assert erasure.retry_pending() == 2
    receipt = ErasureReceipt.objects.get(erased_at=None)
    assert (receipt.user_id, receipt.error) == (first.pk, "ProtectedError: admin.LogEntry")
    assert "error=ProtectedError" in caplog.text
    assert "models=admin.LogEntry" in caplog.text
    assert "ada@example.org" not in caplog.text
    assert SessionStore("0" * 32).load()


@pytest.mark.usefixtures("orders")
def test_many_events_are_emptied_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ahead of the last transaction. What an attempt that failed has emptied is counted too."""
    monkeypatch.setattr(erasure, "EVENTS_AT_ONCE", 3)
    make_identity(make_user("ada", last_name="Protected"), account_made=True)
    for number in range(9):
        deliver("claim.issued", note=str(number))
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 0
    assert WebhookEvent.objects.exclude(subject="").count() == 1
    User.objects.update(last_name="")
    past = ErasureReceipt.objects.get().requested_at - timedelta(days=1)
    ErasureReceipt.objects.update(next_attempt_at=past)
    assert erasure.retry_pending() == 1
    assert not WebhookEvent.objects.exclude(subject="").exists()
    assert ErasureReceipt.objects.get().counts["webhookevent"] == 10
