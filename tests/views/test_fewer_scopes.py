"""Less consent means less is held: what a scope brought goes when a sign-in comes without it."""

from __future__ import annotations

import pytest
from django.test import Client

from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim
from tests.fake_service import FakeService
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def sign_in_with(service: FakeService, client: Client, scopes: str) -> LinkedIdentity:
    service.token = {"scope": scopes}
    assert sign_in(client).status_code == 302
    return LinkedIdentity.objects.get()


def test_without_kyc_read_the_level_goes(client: Client, service: FakeService) -> None:
    """The person does not show it any more, so the site does not know it any more."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read claims:read")
    kyc = (identity.kyc_level, identity.kyc_status, identity.kyc_provider)
    assert kyc == ("", "", "")
    assert (identity.kyc_verified_at, identity.kyc_said_at) == (None, None)
    standing = standing_of(identity.user)
    assert not standing.has_kyc_level("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}


def test_without_claims_read_proofs_go(client: Client, service: FakeService) -> None:
    """The claims are revoked, and the credential is not kept."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read kyc:read")
    assert claims_of(identity.user) == {}
    assert set(StoredClaim.objects.values_list("value", "valid_until")) == {(None, None)}
    assert (identity.credential_issued_at, identity.credential_expires_at) == (None, None)
    assert standing_of(identity.user).has_kyc_level("level_2")


def test_what_comes_back_opens_again(client: Client, service: FakeService) -> None:
    """Whoever allows everything again has everything again."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    sign_in_with(service, client, "profile:read")
    identity = sign_in_with(service, client, "profile:read kyc:read claims:read")
    assert claims_of(identity.user) == {"age_over_18": True}
    assert standing_of(identity.user).has_kyc_level("level_2")
