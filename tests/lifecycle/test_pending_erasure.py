"""While an erasure is pending its subject's gates stay closed, and nobody else's do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle import events
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_erasure import whole_database
from tests.lifecycle.test_events import linked, outcomes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ahead() -> LinkedIdentity:
    """Somebody who consented three minutes from now, by the clock of the service."""
    identity = linked(kyc_level="level_1", kyc_status="verified")
    deliver("consent.granted", at=timezone.now() + timedelta(minutes=3))
    assert standing_of(identity.user).has_kyc_level("level_1")
    return LinkedIdentity.objects.get()


def assert_closed(identity: LinkedIdentity) -> None:
    standing = standing_of(LinkedIdentity.objects.get(pk=identity.pk).user)
    assert not standing.is_linked
    assert not standing.has_kyc_level("level_1")


@pytest.mark.parametrize("seconds", [0, -600, -7200, 86_400])
def test_a_request_closes_gates_whatever_was_granted(ahead: LinkedIdentity, seconds: int) -> None:
    """A consent of a clock that is ahead is over as well, and a sign-in of since."""
    deliver("data.deletion_requested", at=timezone.now() + timedelta(seconds=seconds))
    assert_closed(ahead)


def test_an_operators_revocation_closes_gates_whatever_was_granted(ahead: LinkedIdentity) -> None:
    """It is of this moment, and by our own clock."""
    assert events.revoke(ahead.subject_digest)
    assert_closed(ahead)


def test_an_operators_erasure_closes_gates_whatever_was_granted(
    ahead: LinkedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it cannot be done yet."""
    monkeypatch.setattr(erasure, "attempt", lambda receipt_id: False)
    assert erasure.erase_now(conf.application(), "subject-1").erased_at is None
    assert_closed(ahead)


def test_a_crash_leaves_nothing_of_somebody_erased() -> None:
    """The process died before the event of an erased person was emptied: nothing is stored."""
    linked()
    late = event_body("kyc.verified", at=timezone.now() - timedelta(minutes=1))
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1

    def die(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE") and "webhookevent" in sql:
            raise SystemExit
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(die), pytest.raises(SystemExit):
        post(late)
    assert "subject-1" not in whole_database()
    assert post(late).status_code == 200
    assert "subject-1" not in whole_database()


@pytest.mark.parametrize("other", ["SUBJECT-1", "subject-1 ", "sübject-1"])
def test_another_subjects_pending_erasure_is_not_in_the_way(other: str) -> None:
    """Whatever the collation takes for the same."""
    identity = linked(consent="revoked")
    deliver("data.deletion_requested", subject=other)
    deliver("consent.granted")
    assert outcomes() == ["applied", "applied"]
    assert standing_of(identity.user).is_linked
