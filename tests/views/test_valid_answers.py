"""Valid answers that the spec does not show: the person is signed in, whatever is proven then."""

from __future__ import annotations

import base64
import json

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


@pytest.mark.parametrize("member", ["x5c", "jku"])
def test_a_header_that_names_keys(service: FakeService, member: str) -> None:
    """The credential is refused, so its gates stay closed; the person is in."""

    def with_member(credential: str) -> str:
        signed, _, rest = credential.partition("~")
        parts = [base64.urlsafe_b64decode(part + "==") for part in signed.split(".")[:2]]
        header, payload = map(json.loads, parts)
        return f"{service.signed({**header, member: ['https://evil.example']}, payload)}~{rest}"

    service.bend = with_member
    identity = signed_in()
    assert not identity.claims.exclude(valid_until=None).exists()
    assert (identity.kyc_status, identity.is_due) == ("verified", True)
    assert identity.last_error == "credential_rejected"


def test_a_claim_both_disclosed_and_plain(service: FakeService) -> None:
    """Two statements of one claim prove nothing; the person is in."""
    service.payload = {"age_over_18": True}
    identity = signed_in()
    assert not identity.claims.exclude(valid_until=None).exists()
    assert identity.is_due


@pytest.mark.parametrize("typ", ["at+jwt", "JWT"])
@pytest.mark.parametrize("named", [{}, {"client_id": "test-client"}])
def test_an_access_token_for_the_api(service: FakeService, typ: str, named: dict[str, str]) -> None:
    """A JWT whose ``aud`` is the API's origin (RFC 9068), with our id in it or without."""
    token = service.identity_token("subject-1", head={"typ": typ}, aud=service.origin, **named)
    service.token = {"access_token": token}
    assert signed_in().claims.exclude(valid_until=None).exists()


def test_an_id_token_with_a_list_of_one_audience(service: FakeService) -> None:
    """OpenID Connect allows it."""
    token = service.identity_token("subject-1", aud=["test-client"])
    service.token = {"id_token": token}
    signed_in()
    assert service.calls("me") == 0
