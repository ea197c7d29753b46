"""Erasure under clocks that do not agree: the service's, and those of a site's own machines."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.standing import standing_of
from django_identity.models import ErasureReceipt, LinkedIdentity
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_erasure import whole_database
from tests.lifecycle.test_events import linked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("event_type", ["kyc.verified", "consent.revoked", "wallet.opened"])
def test_what_happened_before_the_request_leaves_nothing_though_the_service_is_ahead(
    event_type: str,
) -> None:
    """Its clock says that it happened after our erasure, but not after its own request."""
    linked()
    ahead = timezone.now() + timedelta(minutes=3)
    late = event_body(event_type, at=ahead - timedelta(seconds=1), provider="note-on-her")
    deliver("data.deletion_requested", at=ahead)
    assert erasure.retry_pending() == 1
    assert post(late).status_code == 200
    assert post(late).status_code == 200
    held = whole_database()
    assert {value for value in ("subject-1", "note-on-her") if value in held} == set()


@pytest.mark.parametrize("event_type", ["kyc.verified", "consent.revoked", "wallet.opened"])
def test_what_happens_after_the_erasure_leaves_nothing_either(event_type: str) -> None:
    """Whatever its time-stamp says, until somebody links the subject anew."""
    linked()
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
    later = timezone.now() + timedelta(minutes=4)
    deliver(event_type, at=later, provider="note-on-her")
    held = whole_database()
    assert {value for value in ("subject-1", "note-on-her") if value in held} == set()
    linked()
    deliver("kyc.verified", at=later, provider="note-on-her")
    assert "note-on-her" in whole_database()


def test_a_request_closes_gates_at_once_though_the_sign_in_was_on_a_machine_ahead() -> None:
    """Nor may it stay open for as long as the site's part of the erasure fails."""
    identity = linked(
        kyc_level="level_1",
        kyc_status="verified",
        signed_in_at=timezone.now() + timedelta(seconds=20),
    )
    assert standing_of(identity.user).has_kyc_level("level_1")
    deliver("data.deletion_requested")
    assert ErasureReceipt.objects.get().erased_at is None
    assert not standing_of(LinkedIdentity.objects.get().user).is_linked
