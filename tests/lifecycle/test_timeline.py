"""What happened to an identity, newest first and bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.lifecycle.events import outcome_of
from django_identity.lifecycle.operators.timeline import Kind, timeline_of
from django_identity.models import AuthorizationRequest, Consent, LinkedIdentity, Purpose
from tests.factories import make_event, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db


def make_request(identity: LinkedIdentity, number: int, **fields: object) -> None:
    held = {
        "purpose": Purpose.SIGN_IN, "completed_by": identity.user, "outcome": "completed",
        "consumed_at": timezone.now() - timedelta(hours=number), **fields,
    }  # fmt: skip
    AuthorizationRequest.objects.create(
        state_digest=f"s{number}", browser_digest="b", application="default", environment="test",
        redirect_uri="/", expires_at=timezone.now(), **held,
    )  # fmt: skip


def test_everything_stands_in_one_line_of_time() -> None:
    """Linked, signed in, renewed, failed, re-fetched, told by events, revoked: newest first."""
    now = timezone.now()
    identity = make_identity(
        make_user(), consent=Consent.REVOKED, revoked_at=now,
        credential_issued_at=now - timedelta(hours=6),
    )  # fmt: skip
    LinkedIdentity.objects.filter(pk=identity.pk).update(created_at=now - timedelta(days=9))
    identity.refresh_from_db()
    make_request(identity, 2)
    make_request(identity, 3, purpose=Purpose.RENEW)
    make_request(identity, 4, completed_by=None, user=identity.user, outcome="service_timeout")
    event = make_event(identity, "claim.issued", occurred_at=now - timedelta(hours=5))
    seen = timeline_of(identity)
    assert [happening.kind for happening in seen] == [
        Kind.CONSENT_REVOKED, Kind.SIGNED_IN, Kind.RENEWED, Kind.SIGN_IN_FAILED, Kind.EVENT,
        Kind.REFETCHED, Kind.LINKED,
    ]  # fmt: skip
    assert (seen[3].detail, seen[4].event_id) == ("service_timeout", event.pk)


def test_a_later_code_is_a_moment_of_its_own() -> None:
    """The code that linked is the linking; one that was redeemed since is told."""
    now = timezone.now()
    identity = make_identity_by_code(make_user(), connect_issued_at=now - timedelta(seconds=5))
    assert [happening.kind for happening in timeline_of(identity)] == [Kind.LINKED]
    identity.connect_issued_at = now + timedelta(days=1)
    assert [happening.kind for happening in timeline_of(identity)] == [
        Kind.CODE_REDEEMED, Kind.LINKED,
    ]  # fmt: skip


def test_other_people_are_not_in_it() -> None:
    """Events of another subject and sign-ins of another user stand elsewhere."""
    identity, other = make_identity(make_user()), make_identity(make_user("b"), subject="another")
    make_event(other, "claim.issued")
    make_request(other, 1)
    assert [happening.kind for happening in timeline_of(identity)] == [Kind.LINKED]


def test_it_is_bounded(django_assert_num_queries: object) -> None:
    """The newest hundred of any number, in two queries."""
    identity = make_identity(make_user())
    for _ in range(7):
        make_event(identity, "claim.issued")
    with django_assert_num_queries(2):  # type: ignore[operator]
        seen = timeline_of(identity, longest=5)
    assert [happening.kind for happening in seen].count(Kind.EVENT) <= 5
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("event_type", "scopes", "said"),
    [
        ("something.new", ["kyc:read"], "ignored: its type is not known"),
        ("kyc.verified", ["claims:read"], "ignored: the consent does not cover the level"),
        ("claim.issued", ["claims:read"], "applied"),
    ],
)
def test_an_ignored_event_says_why(event_type: str, scopes: list[str], said: str) -> None:
    """In the timeline, and on its own page."""
    identity = make_identity(make_user(), scopes=scopes)
    row = make_event(identity, event_type, outcome="")
    row.outcome = outcome_of(identity, row)
    row.save()
    assert [each.outcome for each in timeline_of(identity) if each.kind is Kind.EVENT] == [said]
