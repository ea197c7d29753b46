"""However a re-fetch ends: what is spent, what is written, and when it is tried again."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, connection, connections
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import BudgetSpent, ServiceAway, ServiceUnavailable
from django_identity.lifecycle.upkeep import due_rows, replacement
from django_identity.lifecycle.upkeep.claims import Refetched, refetch
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from django_identity.service import budget
from django_identity.service.budget import Priority
from tests.hostile import HostileService, answer, html, http
from tests.records import make_claim, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
REFUSED = {"success": False, "error": {"code": "x"}}


@pytest.fixture
def identity(service: HostileService) -> LinkedIdentity:
    due = timezone.now() - timedelta(seconds=1)
    made = make_identity(make_user(), refetch_due_at=due)
    make_grant(made)
    return LinkedIdentity.objects.get(pk=made.pk)


def row() -> LinkedIdentity:
    return LinkedIdentity.objects.get()


def test_a_token_refreshed_just_now_is_not_refreshed_again(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """One refresh and one read at most: a fresh token that is refused says all there is to say."""
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.answers["claims"] = answer(REFUSED, status="401 Unauthorized")
    assert refetch(identity) is Refetched.REAUTHORIZATION_NEEDED
    assert (service.calls("token"), service.calls("claims")) == (1, 1)
    assert TokenGrant.objects.get().needs_reauthorization


@pytest.mark.parametrize(
    ("scopes", "outcome"),
    [
        (["profile:read"], Refetched.NOTHING_TO_FETCH),
        (["profile:read", "claims:read"], Refetched.STORED),
        ([], Refetched.STORED),
    ],
    ids=["not for claims", "for claims", "unknown"],
)
def test_claims_are_read_where_the_consent_is_for_them(
    service: HostileService, identity: LinkedIdentity, scopes: list[str], outcome: Refetched
) -> None:
    """Without the scope no call is made, and nothing is due any more."""
    LinkedIdentity.objects.update(scopes=scopes)
    assert refetch(row()) is outcome
    assert service.calls("claims") == (outcome is Refetched.STORED)
    assert (row().refetch_due_at is None) == (outcome is Refetched.NOTHING_TO_FETCH)


def test_a_pause_is_visible_on_the_row(service: HostileService, identity: LinkedIdentity) -> None:
    """An operator sees why nothing comes; it counts as nobody's failure and stays due."""
    service.answers["claims"] = http(b"", status="429 Slow", headers="Retry-After: 30\r\n")
    assert refetch(identity) is Refetched.NOT_NOW
    assert (row().last_error, row().refetch_failures) == ("rate_limited", 0)
    assert row().refetch_due_at == identity.refetch_due_at


def test_no_turn_in_the_budget_is_nobodys_failure(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Nothing was sent: the row stays due as it was, and says why."""
    # Calls are counted in windows of the clock, and this test must not straddle two.
    time.sleep(max(0.0, time.time() % 60 - 57))
    spent = service.settings(RATE_LIMIT="1/min", TIMEOUT=1)
    with override_settings(DJANGO_IDENTITY={"default": spent}):
        budget.await_turn(conf.application(), Priority.INTERACTIVE, endpoint="claims", patience=0)
        assert refetch(identity) is Refetched.NOT_NOW
    assert (row().last_error, row().refetch_failures) == (BudgetSpent.code, 0)
    assert row().refetch_due_at == identity.refetch_due_at
    assert service.calls("claims") == 0


def test_a_service_that_is_away_keeps_the_rows_turn(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Nothing was sent: whoever was the longest due is so when the service is back."""
    for _ in range(5):
        budget.note(conf.application(), "claims", ServiceUnavailable())
    assert refetch(identity) is Refetched.NOT_NOW
    assert (row().last_error, row().refetch_failures) == (ServiceAway.code, 0)
    assert row().refetch_due_at == identity.refetch_due_at
    assert service.calls("claims") == 0


def test_a_call_that_shows_the_service_away_makes_room_for_another(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """If the failure is this identity's alone, the next try must be somebody else's."""
    for _ in range(4):
        budget.note(conf.application(), "claims", ServiceUnavailable())
    service.answers["claims"] = html("500 Oops")
    assert refetch(identity) is Refetched.NOT_NOW
    assert (row().last_error, row().refetch_failures) == ("service_unavailable", 0)
    due_at = row().refetch_due_at
    assert due_at is not None
    assert timezone.now() < due_at <= timezone.now() + timedelta(minutes=1)


def test_a_refresh_under_way_elsewhere_is_no_failure(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """The row stays due; the next sweep finds what the other one brought."""
    later = timezone.now() + timedelta(minutes=1)
    TokenGrant.objects.update(access_expires_at=timezone.now(), retry_at=later)
    assert refetch(identity) is Refetched.POSTPONED
    assert (row().last_error, row().refetch_failures) == ("refresh_pending", 0)
    assert row().refetch_due_at == identity.refetch_due_at
    assert service.calls("token") == 0


def test_an_answer_without_a_credential_revokes_what_it_says(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """It proves nothing, so the other claims stand as they are."""
    make_claim(identity)
    make_claim(identity, "unique_human")
    listed = [
        {"claim_type": name, "provider": "KYC", "revoked": name == "unique_human"}
        for name in ("age_over_18", "unique_human")
    ]
    body = {"user_id": service.subject, "claims": listed, "credential": None}
    service.answers["claims"] = {"success": True, "data": body}
    assert refetch(identity) is Refetched.FAILED
    revoked = StoredClaim.objects.values_list("claim_type", "revoked").order_by("claim_type")
    assert list(revoked) == [("age_over_18", False), ("unique_human", True)]


def test_only_revoked_claims_need_no_credential(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """Nothing is left to prove, so this is no failure, and nothing is held any more."""
    make_claim(identity)
    listed = [{"claim_type": "age_over_18", "provider": "KYC", "revoked": True}]
    body = {"user_id": service.subject, "claims": listed, "credential": None}
    service.answers["claims"] = {"success": True, "data": body}
    assert refetch(identity) is Refetched.STORED
    assert not StoredClaim.objects.filter(revoked=False).exists()
    assert row().credential == ""


def test_claims_and_credential_are_stored_together(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """If the claims cannot be written the row says nothing of a newer credential."""

    def refusing(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT") and "storedclaim" in sql:
            raise DataError
        return execute(sql, *rest)

    with connection.execute_wrapper(refusing), pytest.raises(DataError):
        refetch(identity)
    assert (row().credential, row().refetch_due_at) == ("", identity.refetch_due_at)


@pytest.mark.parametrize("taken_anew", [False, True], ids=["ours", "somebody else's"])
def test_what_is_overtaken_lets_go_of_its_own_row(
    service: HostileService, identity: LinkedIdentity, taken_anew: bool
) -> None:
    """So that what came first is served by the next sweep; another's lease is left alone."""
    assert due_rows.start(identity)
    theirs = timezone.now() + HOUR

    def meanwhile() -> None:
        changes = {"refetch_taken_until": theirs} if taken_anew else {}
        LinkedIdentity.objects.update(last_event_digest="another", **changes)
        connections.close_all()

    service.meanwhile["claims"] = meanwhile
    assert refetch(identity) is Refetched.OVERTAKEN
    assert row().refetch_taken_until == (theirs if taken_anew else None)
    assert row().refetch_started is taken_anew


def test_a_credential_at_its_end_is_not_asked_for_without_a_pause(
    service: HostileService, identity: LinkedIdentity
) -> None:
    """A service that answers from a cache would be asked again and again."""
    service.payload["exp"] = int(time.time()) + 60
    assert refetch(identity) is Refetched.STORED
    due_at = row().refetch_due_at
    assert due_at is not None
    assert due_at > timezone.now() + timedelta(minutes=4)


@pytest.mark.parametrize(
    ("digest", "share"), [("00000000", 0.65), ("7fffffff", 0.75), ("ffffffff", 0.85)]
)
def test_due_at_three_quarters_give_or_take_a_tenth(digest: str, share: float) -> None:
    """The place in the spread is the identity's own, so that it stays when the day is over."""
    now = timezone.now()
    identity = LinkedIdentity(subject_digest=digest + "0" * 56)
    due_at = replacement.due_at(identity, now=now, ends_at=now + 24 * HOUR)
    assert (due_at - now) / (24 * HOUR) == pytest.approx(share, abs=0.001)
