"""What a sign-in or a code brings, and what it does not: anything older than what is known."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_identity.models import AuthorizationRequest, LinkedIdentity, StoredClaim
from tests.deliveries import SECRET, deliver
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.DJANGO_IDENTITY = {"default": service.settings(WEBHOOK_SECRETS=[SECRET])}
    return service


def test_an_older_sign_in_that_ends_later_is_not_the_newest(site: FakeService) -> None:
    """The events between the two stay superseded."""
    sign_in(Client())
    newest = LinkedIdentity.objects.get().signed_in_at
    browser = Client()
    state = begin(browser)
    AuthorizationRequest.objects.update(created_at=newest - timezone.timedelta(minutes=30))
    come_back(browser, state)
    assert is_signed_in(browser)
    assert LinkedIdentity.objects.get().signed_in_at == newest


def test_a_sign_in_with_an_older_credential_proves_nothing(site: FakeService) -> None:
    """It could replay a claim that was revoked since."""
    sign_in(Client())
    proven = StoredClaim.objects.exclude(valid_until=None)
    assert proven.exists()
    newer = timezone.now() + timezone.timedelta(minutes=1)
    LinkedIdentity.objects.update(credential_issued_at=newer)
    sign_in(Client())
    assert not proven.exists()
    assert LinkedIdentity.objects.get().credential_issued_at == newer


def test_a_code_from_the_future_outlasts_no_rejection(site: FakeService) -> None:
    """The service's clock may be ahead."""
    site.connect["issued_at"] = (timezone.now() + timezone.timedelta(days=365)).isoformat()
    hand_in(browser_of(make_user()))
    deliver("kyc.rejected")
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


def test_a_code_brings_no_level_that_is_older_than_the_known_one(site: FakeService) -> None:
    user, now = make_user(), timezone.now()
    make_identity_by_code(user, kyc_status="rejected", kyc_said_at=now)
    site.connect["issued_at"] = (now - timezone.timedelta(minutes=1)).isoformat()
    hand_in(browser_of(user))
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


def test_a_code_that_somebody_else_redeemed_is_used(site: FakeService) -> None:
    """Also for a person who has an identity."""
    hand_in(browser_of(make_user()))
    eve = make_identity(make_user("eve"), subject="subject-2").user
    assert "connect_code_used" in hand_in(browser_of(eve)).content.decode()
