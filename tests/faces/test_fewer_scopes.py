"""Less consent means less is held: what a scope brought goes when a sign-in comes without it."""

from __future__ import annotations

import pytest
from django.test import Client

from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.records import make_claim, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def sign_in_with(service: HostileService, client: Client, scopes: str) -> LinkedIdentity:
    service.token = {"scope": scopes}
    assert sign_in(client).status_code == 302
    return LinkedIdentity.objects.get()


def test_without_kyc_read_the_level_goes(client: Client, service: HostileService) -> None:
    """The person does not show it any more, so the site does not know it any more."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read claims:read")
    kyc = (identity.kyc_level, identity.kyc_status, identity.kyc_provider)
    assert kyc == ("", "", "")
    assert (identity.kyc_verified_at, identity.kyc_checked_at) == (None, None)
    standing = standing_of(identity.user)
    assert not standing.has_kyc_level("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}


def test_without_claims_read_proofs_go(client: Client, service: HostileService) -> None:
    """The claims are revoked, and the credential is not kept."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read kyc:read")
    assert claims_of(identity.user) == {}
    assert set(StoredClaim.objects.values_list("revoked", "value")) == {(True, None)}
    assert (identity.credential, identity.credential_kid) == ("", "")
    assert (identity.credential_issued_at, identity.credential_expires_at) == (None, None)
    assert standing_of(identity.user).has_kyc_level("level_2")


def test_what_comes_back_opens_again(client: Client, service: HostileService) -> None:
    """Whoever allows everything again has everything again."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    sign_in_with(service, client, "profile:read")
    identity = sign_in_with(service, client, "profile:read kyc:read claims:read")
    assert claims_of(identity.user) == {"age_over_18": True}
    assert standing_of(identity.user).has_kyc_level("level_2")


def test_a_level_that_a_code_brought_stays(client: Client, service: HostileService) -> None:
    """No scope of the sign-in had brought it."""
    ada = make_user()
    identity = make_identity_by_code(ada)
    make_claim(identity, valid_until=None, value=None)
    client.force_login(ada)
    identity = sign_in_with(service, client, "profile:read")
    assert standing_of(identity.user).has_kyc_level("level_2")
