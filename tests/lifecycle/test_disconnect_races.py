"""Disconnecting while the service sends events about the same person."""

from __future__ import annotations

import pytest

from django_identity import conf
from django_identity.lifecycle import arrival
from django_identity.models import FormerLink, LinkedIdentity, TokenGrant, WebhookEvent
from tests.at_once import at_once
from tests.deliveries import deliver
from tests.records import make_claim, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("event_type", ["claim.revoked", "consent.revoked", "kyc.rejected"])
@pytest.mark.parametrize("number", range(3))
def test_an_event_at_the_same_moment(event_type: str, number: int) -> None:
    """Both end, in either order, and nothing of the link is left."""
    user = make_user()
    identity = make_identity(user, scopes=["kyc:read"])
    make_claim(identity)
    make_grant(identity)
    for old in range(3):
        deliver("claim.issued", event_id=f"old-{old}")

    def disconnect() -> int:
        return 200 if arrival.unlink(user, application=conf.application()) else 0

    def announce() -> int:
        return deliver(event_type).status_code

    assert at_once([disconnect, announce, announce]) == [200, 200, 200]
    assert not LinkedIdentity.objects.exists()
    assert not TokenGrant.objects.exists()
    assert FormerLink.objects.count() == 1
    assert not WebhookEvent.objects.filter(event_id__startswith="old").exists()


def test_two_presses_of_the_button() -> None:
    """One of them disconnects; the other finds nothing."""
    user = make_user()
    make_claim(make_identity(user))

    def disconnect() -> bool:
        return arrival.unlink(user, application=conf.application())

    assert sorted(at_once([disconnect, disconnect, disconnect])) == [False, False, True]
    assert FormerLink.objects.count() == 1
