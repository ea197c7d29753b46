"""What happened to an identity, newest first and bounded."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.lifecycle.operators import timeline
from django_identity.lifecycle.operators.timeline import HappeningKind, timeline_of
from django_identity.lifecycle.said.effects import outcome_of
from django_identity.models import Consent, LinkedIdentity
from tests.factories import (
    LONG_AGO,
    make_claim,
    make_event,
    make_identity,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_everything_stands_in_one_line_of_time():
    """Linked, re-fetched, told by events, by codes, signed in, revoked: newest first."""
    now = timezone.now()
    identity = make_identity(
        make_user(), consent=Consent.REVOKED, revoked_at=now,
        connect_issued_at=now - timedelta(hours=1), signed_in_at=now - timedelta(hours=2),
        credential_issued_at=now - timedelta(hours=6),
    )  # fmt: skip
    LinkedIdentity.objects.filter(pk=identity.pk).update(
        created_at=now - timedelta(days=9)
    )
    identity.refresh_from_db()
    event = make_event(identity, "claim.issued", occurred_at=now - timedelta(hours=5))
    claim = make_claim(identity, issued_at=now - timedelta(days=2))
    seen = timeline_of(identity)
    assert [happening.kind for happening in seen] == [
        HappeningKind.CONSENT_REVOKED,
        HappeningKind.CODE_REDEEMED,
        HappeningKind.SIGNED_IN,
        HappeningKind.EVENT,
        HappeningKind.REFETCHED,
        HappeningKind.CLAIM,
        HappeningKind.LINKED,
    ]
    assert seen[3].event == event
    assert seen[5].claim == claim
    claim.revoked_at = now
    claim.save()
    assert HappeningKind.CLAIM in {each.kind for each in timeline_of(identity)[:2]}
    # The code that linked is the linking.
    identity.connect_issued_at = identity.created_at - timedelta(seconds=5)
    kinds = {each.kind for each in timeline_of(identity)}
    assert HappeningKind.CODE_REDEEMED not in kinds


def test_a_timeline_has_the_newest_events_of_one_person(
    django_assert_num_queries, monkeypatch
):
    """All that is stored and the newest hundred events, in two queries; nothing of others."""
    identity, other = (
        make_identity(make_user()),
        make_identity(make_user("b"), subject="another"),
    )
    make_event(other, "kyc.rejected")
    make_claim(identity, issued_at=LONG_AGO)
    assert timeline.MOST == 100
    monkeypatch.setattr(timeline, "MOST", 5)
    for _ in range(7):
        make_event(identity, "claim.issued")
    with django_assert_num_queries(2):
        seen = timeline_of(identity)
    events = [each.event.event_type for each in seen if each.event is not None]
    assert events == ["claim.issued"] * 5
    assert [each.kind for each in seen if each.event is None] == [
        HappeningKind.LINKED,
        HappeningKind.CLAIM,
    ]


@pytest.mark.parametrize(
    ("event_type", "scopes", "said"),
    [
        ("something.new", ["kyc:read"], "ignored: its type is not known"),
        ("kyc.verified", ["claims:read"], "ignored: the consent does not cover the level"),
        ("claim.issued", ["claims:read"], "applied"),
    ],
)  # fmt: skip
def test_an_ignored_event_says_why(event_type, scopes, said):
    """In the timeline, and on its own page."""
    identity = make_identity(make_user(), scopes=scopes)
    row = make_event(identity, event_type, outcome="")
    row.outcome = outcome_of(identity, row)
    row.save()
    [event] = [each.event for each in timeline_of(identity) if each.event is not None]
    assert event.outcome_in_words == said
