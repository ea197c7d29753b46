"""Valid answers that the spec does not show: the person is signed in, whatever is proven then."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_identity.models import Consent, LinkedIdentity
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in() -> LinkedIdentity:
    """The person's identity, after a sign-in that ended well."""
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)
    identity = LinkedIdentity.objects.get(subject="subject-1")
    assert identity.consent == Consent.GRANTED
    return identity


@pytest.mark.parametrize("member", ["kyc", "profile"])
def test_a_code_that_shares_null(service: FakeService, member: str) -> None:
    """There is nothing to share: the account is linked, without a level or without a name."""
    result = service.connect_result()
    result["data"][member] = None
    service.connect = {"data": result["data"]}
    user = User.objects.create_user("ada")
    assert hand_in(browser_of(user)).status_code == 302
    identity = LinkedIdentity.objects.get(user=user)
    assert identity.consent == Consent.GRANTED
    assert bool(identity.kyc_level) == (member == "profile")
    assert bool(identity.connect_person) == (member == "kyc")


@pytest.mark.parametrize("typ", ["at+jwt", "JWT"])
@pytest.mark.parametrize("named", [{}, {"client_id": "test-client"}])
def test_an_access_token_for_the_api(service: FakeService, typ: str, named: dict[str, str]) -> None:
    """A JWT whose ``aud`` is the API's origin (RFC 9068), with our id in it or without."""
    token = service.identity_token("subject-1", head={"typ": typ}, aud=service.origin, **named)
    service.token = {"access_token": token}
    assert signed_in().claims.exclude(valid_until=None).exists()
