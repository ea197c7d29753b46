"""One refresh for many callers, and none without autocommit: on the real database.

Death, revocation and sign-in in the middle of one: ``tests.interleavings``.
"""

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from tests import concurrency
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.lifecycle import process_calls
from tests.lifecycle.grants import expired

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    return make_identity(make_user())


def test_two_hundred_callers_lead_to_one_refresh(service, identity):
    """Two hundred callers at once, in four processes, cost one call and all get its token."""
    expired(identity)
    call = process_calls.access_token
    # The crowd keeps the machine busy: the service is given time to be heard.
    with override_settings(DJANGO_IDENTITY=service.settings(TIMEOUT=60)):
        tokens = concurrency.in_processes(4, call, identity.pk, threads=50)
    assert tokens == ["at-1"] * 200
    assert service.refresh_tokens == ["rt-0"]


def test_a_dead_workers_lease_runs_out(service, identity):
    """Whoever comes next waits for the lease of a worker that died, then takes over."""
    expired(identity, lease_until=timezone.now() + timedelta(seconds=0.3))
    assert access_token_for(identity).reveal() == "at-1"
    assert TokenGrant.objects.get().lease_until is None


def test_without_autocommit_nothing_is_refreshed(service, identity):
    """A rollback would lose the new tokens, so the error comes before anything is sent."""
    expired(identity)
    transaction.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError, match="Autocommit is off"):
            access_token_for(identity)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert service.requests == []
