"""Less consent means less is held: what a scope brought goes when a sign-in comes without it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client

from django_identity import signals
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in

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
    assert standing.level_shortfall("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}


def test_without_claims_read_proofs_go_once(client: Client, service: FakeService) -> None:
    """The claims' values go, the credential is not kept, and only the first sign-in says so."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    heard = []

    def hear(**_sent: object) -> None:
        heard.append(True)

    signals.claims_changed.connect(hear)
    try:
        for _ in range(2):
            identity = sign_in_with(service, client, "profile:read kyc:read")
    finally:
        signals.claims_changed.disconnect(hear)
    assert heard == [True]
    assert claims_of(identity.user) == {}
    assert set(StoredClaim.objects.values_list("value", "valid_until")) == {(None, None)}
    assert (identity.credential_issued_at, identity.credential_expires_at) == (None, None)
    assert standing_of(identity.user).level_shortfall("level_2") is None


def test_claims_of_a_sign_in_meanwhile_go_too(service: FakeService) -> None:
    """Another tab brings claims after the row was read: the sign-in without them sees that."""
    late = Client()
    service.token = {"scope": "profile:read kyc:read"}
    sign_in(Client())
    state = begin(late)
    others: list[int] = []

    def meanwhile(execute: Any, sql: str, *given: Any) -> Any:
        done = execute(sql, *given)
        if "linkedidentity" in sql and not others:
            others.append(1)
            service.token = {}
            others.append(sign_in(Client()).status_code)
        return done

    with connection.execute_wrapper(meanwhile):
        assert come_back(late, state).status_code == 302
    assert others == [1, 302]
    claim = StoredClaim.objects.get()
    assert (claim.value, claim.valid_until) == (None, None)


def test_what_comes_back_opens_again(client: Client, service: FakeService) -> None:
    """Whoever allows everything again has everything again."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    sign_in_with(service, client, "profile:read")
    identity = sign_in_with(service, client, "profile:read kyc:read claims:read")
    assert claims_of(identity.user) == {"age_over_18": True}
    assert standing_of(identity.user).level_shortfall("level_2") is None
