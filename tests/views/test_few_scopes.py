"""A site may ask for little, and a person may allow less: that much is read, and that much held."""

from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_identity import database, signals
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.gates import claims_of
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from tests.factories import again
from tests.fake_service import FakeService
from tests.lifecycle.grants import announced
from tests.lifecycle.refetches import refetched
from tests.sign_in import begin, come_back, sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("granted", "calls"),
    [("profile:read", ["token", "me"]), ("claims:read", ["token", "claims", "jwks"]),
     ("kyc:read", ["token", "kyc"]), ("kyc:read claims:read", ["token", "claims", "kyc", "jwks"])],
)  # fmt: skip
def test_nothing_is_read_that_was_not_granted(client, service, granted, calls):
    service.token, service.kyc = {"scope": granted}, {"user_id": "subject-1"}
    assert sign_in(client).status_code == 302
    assert [name for name, _, _ in service.requests] == calls
    assert LinkedIdentity.objects.get().subject == "subject-1"


def sign_in_with(service: FakeService, client: Client, scopes: str) -> LinkedIdentity:
    service.token = {"scope": scopes}
    assert sign_in(client).status_code == 302
    return LinkedIdentity.objects.get()


def test_without_kyc_read_the_level_goes(client, service):
    """The person does not show it, so the site does not know it; who allows it again has it."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read claims:read")
    kyc = (identity.kyc_level, identity.kyc_status, identity.kyc_provider)
    assert kyc == ("", "", "")
    assert (identity.kyc_verified_at, identity.kyc_said_at) == (None, None)
    assert standing_of(identity.user).level_shortfall("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}
    identity = sign_in_with(service, client, "profile:read kyc:read")
    assert standing_of(identity.user).level_shortfall("level_2") is None


def test_without_claims_read_proofs_go_once(client, service):
    """The claims' values go, the credential is not kept, and only the first sign-in says so."""
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    with announced(signals.claims_changed) as heard:
        for _ in range(2):
            identity = sign_in_with(service, client, "profile:read kyc:read")
    assert heard == [identity]
    assert claims_of(identity.user) == {}
    assert set(StoredClaim.objects.values_list("value", "valid_until")) == {
        (None, None)
    }
    assert identity.credential_expires_at is None
    assert standing_of(identity.user).level_shortfall("level_2") is None
    identity = sign_in_with(service, client, "claims:read")
    assert claims_of(identity.user) == {"age_over_18": True}


def test_claims_of_a_sign_in_meanwhile_go_too(service, monkeypatch):
    """Another tab brings claims after the row was read: the sign-in without them sees that."""
    # One connection plays both tabs, so the second one is inside the first one's transaction.
    monkeypatch.setattr(database, "require_no_transaction", lambda _message: None)
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


@pytest.mark.parametrize("fetch", [access_token_for, refetched])
@pytest.mark.parametrize("left", ["kyc:read", "claims:read"])
def test_a_refresh_with_fewer_scopes_takes_level_and_claims(
    client, service, settings, left, fetch
):
    """Though the service still answers. A sign-in brings what is allowed then."""
    later = ["kyc:read", "claims:read"]
    settings.DJANGO_IDENTITY = service.settings(
        SCOPES=["profile:read"], LATER_SCOPES=later
    )
    user = sign_in_with(service, client, "profile:read kyc:read claims:read").user
    assert claims_of(user) == {"age_over_18": True}
    TokenGrant.objects.update(access_expires_at=timezone.now())
    service.token = {"scope": f"profile:read {left}"}

    with suppress(ReauthorizationNeeded):
        fetch(LinkedIdentity.objects.get())

    identity = LinkedIdentity.objects.get()
    assert identity.scopes == ["profile:read", left]
    assert standing_of(again(user)).level_shortfall("level_2") is not None
    assert (identity.kyc_level, identity.kyc_said_at) == ("", None)
    assert claims_of(again(user)) == {}
    assert not StoredClaim.objects.filter(value__isnull=False).exists()
    assert identity.credential_expires_at is None
    sign_in(client)
    user = again(user)
    level_counts = standing_of(user).level_shortfall("level_2") is None
    assert level_counts == (left == "kyc:read")
    assert bool(claims_of(user)) == (left == "claims:read")
