"""However a re-fetch ends: what is spent, what is written, and when it is tried again."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, connection
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle import refetch
from django_identity.lifecycle.upkeep import Refetched
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, html, http
from tests.lifecycle.refetching import refetched

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
REFUSED = {"success": False, "error": {"code": "x"}}


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    due = timezone.now() - timedelta(seconds=1)
    made = make_identity(make_user(), refetch_due_at=due)
    make_grant(made)
    return LinkedIdentity.objects.get(pk=made.pk)


def row() -> LinkedIdentity:
    return LinkedIdentity.objects.get()


def test_a_token_refreshed_just_now_is_not_refreshed_again(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """One refresh and one read at most: a fresh token that is refused says all there is to say."""
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.answers["claims"] = answer(REFUSED, status="401 Unauthorized")
    assert refetched(identity) is Refetched.REAUTHORIZATION_NEEDED
    assert (service.calls("token"), service.calls("claims")) == (1, 1)
    assert TokenGrant.objects.get().needs_reauthorization


def test_a_pause_is_visible_on_the_row(service: FakeService, identity: LinkedIdentity) -> None:
    """An operator sees why nothing comes."""
    service.answers["claims"] = http(b"", status="429 Slow", headers="Retry-After: 300\r\n")
    assert refetched(identity) is Refetched.NOT_NOW
    assert row().last_error == "rate_limited"


@pytest.mark.parametrize("endpoint", ["jwks", "token", "claims"])
def test_an_outage_is_retried_after_a_pause(
    service: FakeService, identity: LinkedIdentity, endpoint: str
) -> None:
    """The row that met it waits, and so another one is tried first."""
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.answers[endpoint] = html("500 Oops")
    assert refetched(identity) is Refetched.OUTAGE
    assert row().refetch_failures == 1
    assert not TokenGrant.objects.get().needs_reauthorization
    due_at = row().refetch_due_at
    assert due_at is not None
    assert timezone.now() < due_at <= timezone.now() + timedelta(minutes=2)


def test_an_answer_without_a_credential_revokes_what_it_says(
    service: FakeService, identity: LinkedIdentity
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
    assert refetched(identity) is Refetched.FAILED
    rows = StoredClaim.objects.order_by("claim_type")
    assert [(row.claim_type, row.revoked) for row in rows] == [
        ("age_over_18", False),
        ("unique_human", True),
    ]


def test_only_revoked_claims_need_no_credential(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """Nothing is left to prove, so this is no failure, and nothing is held any more."""
    make_claim(identity)
    listed = [{"claim_type": "age_over_18", "provider": "KYC", "revoked": True}]
    body = {"user_id": service.subject, "claims": listed, "credential": None}
    service.answers["claims"] = {"success": True, "data": body}
    assert refetched(identity) is Refetched.STORED
    assert not StoredClaim.objects.filter(revoked_at=None).exists()
    assert row().credential_expires_at is None


def test_a_credential_at_its_end_is_not_asked_for_without_a_pause(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """A service that answers from a cache would be asked again and again."""
    service.payload["exp"] = int(time.time()) + 60
    assert refetched(identity) is Refetched.STORED
    due_at = row().refetch_due_at
    assert due_at is not None
    assert due_at > timezone.now() + timedelta(minutes=4)


@pytest.mark.parametrize(
    ("scopes", "calls"),
    [
        (["profile:read"], ["token"]),
        (["profile:read", "kyc:read"], ["token", "kyc"]),
        (["claims:read"], ["jwks", "token", "claims"]),
        ([], ["jwks", "token", "claims"]),
    ],
    ids=["neither", "level", "claims", "unknown"],
)
def test_what_the_consent_covers_is_read(
    service: FakeService, identity: LinkedIdentity, scopes: list[str], calls: list[str]
) -> None:
    """A grant that nothing else uses is refreshed, well before its 30 days are over."""
    a_day_ago = timezone.now() - 24 * HOUR
    LinkedIdentity.objects.update(scopes=scopes, kyc_said_at=a_day_ago)
    TokenGrant.objects.update(access_expires_at=a_day_ago)
    assert refetched(identity) is Refetched.STORED
    assert [name for name, _, _ in service.requests] == calls
    due_at = row().refetch_due_at
    assert due_at is not None
    days = (due_at - timezone.now()) / (24 * HOUR)
    assert (19 < days < 26) if calls == ["token"] else (0.6 < days < 1.7)


def test_claims_and_credential_are_stored_together(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """If the claims cannot be written the row says nothing of a newer credential."""

    def refusing(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT") and "storedclaim" in sql:
            raise DataError
        return execute(sql, *rest)

    LinkedIdentity.objects.update(refetch_failures=3)
    with connection.execute_wrapper(refusing):
        assert refetched(identity) is Refetched.FAILED
    assert row().credential_issued_at is None
    assert (row().last_error, row().refetch_failures) == ("unexpected_error", 4)


def test_a_refresh_under_way_elsewhere_is_retried_soon(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """It is no outage: the others are served."""
    later = timezone.now() + timedelta(minutes=1)
    TokenGrant.objects.update(access_expires_at=timezone.now(), retry_at=later)
    assert refetched(identity) is Refetched.FAILED
    assert row().last_error == "refresh_pending"
    due_at = row().refetch_due_at
    assert due_at is not None
    assert timezone.now() < due_at <= timezone.now() + timedelta(minutes=1)
    assert service.calls("token") == 0


def test_a_level_that_cannot_be_read_stops_no_claims(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """The claims are stored, and the level is asked for again soon."""
    LinkedIdentity.objects.update(scopes=["kyc:read", "claims:read"], kyc_said_at=None)
    service.answers["kyc"] = html("500 Oops")
    assert refetched(identity) is Refetched.FAILED
    assert StoredClaim.objects.get().valid_until is not None
    due_at = row().refetch_due_at
    assert due_at is not None
    assert due_at <= timezone.now() + timedelta(minutes=1)
    assert (row().refetch_failures, row().last_error) == (1, "service_unavailable")


def test_a_level_is_stored_though_the_claims_cannot_be_read(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """It is the service's own word, which needs no credential."""
    LinkedIdentity.objects.update(scopes=["kyc:read", "claims:read"], kyc_said_at=None)
    service.kyc = {"kyc_level": "level_3"}
    service.answers["claims"] = html("500 Oops")
    assert refetched(identity) is Refetched.OUTAGE
    assert (row().kyc_level, row().refetch_failures) == ("level_3", 1)


@pytest.mark.parametrize(
    ("digest", "share"), [("00000000", 0.65), ("7fffffff", 0.75), ("ffffffff", 0.85)]
)
def test_due_at_three_quarters_give_or_take_a_tenth(
    service: FakeService, digest: str, share: float
) -> None:
    """The place in the spread is the identity's own, so that it stays when the day is over."""
    now = timezone.now()
    identity = LinkedIdentity(subject_digest=digest + "0" * 56, scopes=["claims:read"])
    due_at = refetch.next_due(
        conf.application(), identity, level_said_at=None, claims_until=now + 24 * HOUR
    )
    assert (due_at - now) / (24 * HOUR) == pytest.approx(share, abs=0.001)
