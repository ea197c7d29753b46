"""What the service took back stays taken back until the service itself says otherwise."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.lifecycle.upkeep.claims import refetch
from django_identity.models import LinkedIdentity
from tests.deliveries import SECRET, deliver
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.lifecycle.redeeming import redeem
from tests.lifecycle.test_claims import with_claims
from tests.lifecycle.test_kyc_runs_out import ALL
from tests.lifecycle.test_kyc_runs_out import service as service
from tests.records import make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

ADULT = Requirement("age_over_18")
LEVEL = "level_2"


def held() -> LinkedIdentity:
    return LinkedIdentity.objects.get()


def linked() -> LinkedIdentity:
    now = timezone.now()
    made = make_identity(make_user(), scopes=ALL, refetch_due_at=now, kyc_checked_at=now)
    make_grant(made)
    return held()


def test_a_credential_from_before_a_revocation_proves_nothing(service: HostileService) -> None:
    """A service that answers from a cache does not bring the revoked claim back."""
    identity = linked()
    service.payload = {"iat": int(time.time()) - 60}
    with_claims(service)
    refetch(identity)
    assert standing_of(identity.user).has_claim(ADULT)
    deliver("claim.revoked", claim_type="age_over_18")
    refetch(held())
    assert not standing_of(identity.user).has_claim(ADULT)


def test_a_newer_credential_proves_the_claim_again(service: HostileService) -> None:
    """A credential that was issued after the revocation opens the gate again."""
    identity = linked()
    deliver("claim.revoked", at=timezone.now() - timedelta(minutes=6), claim_type="age_over_18")
    with_claims(service)
    refetch(held())
    assert standing_of(identity.user).has_claim(ADULT)


def test_a_rejection_wins_over_an_answer_that_is_hardly_newer(service: HostileService) -> None:
    """The site's clock and the service's may differ, so the level waits for the next answer."""
    identity = linked()
    LinkedIdentity.objects.update(kyc_changed_at=timezone.now(), kyc_rank="")
    assert standing_of(identity.user).has_kyc_level(identity.kyc_level)
    deliver("kyc.rejected", at=timezone.now() - timedelta(seconds=90))
    assert not standing_of(identity.user).has_kyc_level(identity.kyc_level)
    assert held().refetch_due_at <= timezone.now()


def test_a_verification_from_the_future_withstands_no_rejection(service: HostileService) -> None:
    """It counts from its receipt, so what comes in later is newer."""
    identity = linked()
    deliver("kyc.verified", kyc_level=LEVEL, at=timezone.now() + timedelta(minutes=4))
    assert standing_of(identity.user).has_kyc_level(LEVEL)
    deliver("kyc.rejected")
    assert not standing_of(identity.user).has_kyc_level(LEVEL)


def test_the_level_of_a_code_hears_of_its_rejection(service: HostileService) -> None:
    """A sign-in without ``kyc:read`` keeps the level that a code brought, and its scope."""
    few = service.settings(WEBHOOK_SECRETS=[SECRET], SCOPES=["profile:read", "claims:read"])
    with override_settings(DJANGO_IDENTITY={"default": few}):
        user, browser = make_user(), Client()
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        redeem(user)
        sign_in(browser)
        level = held().kyc_level
        assert standing_of(user).has_kyc_level(level)
        deliver("kyc.rejected")
        assert not standing_of(user).has_kyc_level(level)
