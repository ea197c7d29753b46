"""A revoked claim stays so in every way in: a cache may still have a credential from before."""

import time
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity
from django_identity.requirements import RequiredClaim
from tests.deliveries import deliver
from tests.fake_service import FakeService
from tests.lifecycle.refetches import refetched
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMS = {"age_over_18": True, "unique_human": True}
#: The credentials' times of issue: from before the revocation, and from after it.
NOW = int(time.time())
ISSUED, REVOKED, LATER = NOW - 60, NOW - 30, NOW - 10


@pytest.fixture(autouse=True)
def _site(service: FakeService) -> None:
    service.disclosed = dict(CLAIMS)
    service.payload["iat"] = ISSUED


def revoke(claim_type: str = "age_over_18") -> None:
    deliver(
        "claim.revoked", at=datetime.fromtimestamp(REVOKED, UTC), claim_type=claim_type
    )


def proven() -> set[str]:
    """The claims whose gates are open."""
    standing = standing_of(LinkedIdentity.objects.get().user)
    return {name for name in CLAIMS if standing.shortfall(RequiredClaim(name)) is None}


def links_again() -> None:
    user = User.objects.get()
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    sign_in(client)


def by_a_new_link() -> None:
    sign_in(Client())
    revoke()
    User.objects.update(password="x")
    disconnecting.disconnect(LinkedIdentity.objects.get())
    links_again()


def by_a_new_account() -> None:
    sign_in(Client())
    revoke()
    User.objects.get().delete()
    sign_in(Client())


def by_a_first_link() -> None:
    revoke()
    sign_in(Client())


@pytest.mark.parametrize("way_in", [by_a_new_link, by_a_new_account, by_a_first_link])
def test_an_older_credential_proves_nothing_again(service, way_in):
    """The site does not know any more which claim was revoked, so none counts."""
    way_in()
    assert proven() == set()
    refetched(LinkedIdentity.objects.get())
    assert proven() == set()
    service.payload["iat"] = LATER
    refetched(LinkedIdentity.objects.get())
    assert proven() == {*CLAIMS}


@pytest.mark.parametrize(
    "issued", [LATER, REVOKED + 1], ids=["later", "a second later"]
)
def test_a_younger_credential_proves_it_at_once(service, issued):
    """Whatever was revoked before."""
    revoke()
    service.payload["iat"] = issued
    sign_in(Client())
    assert proven() == {*CLAIMS}
