"""What a sign-in or a code brings, and what it does not: anything older than what is known."""

import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.lifecycle.leaving import disconnecting
from django_identity.models import AuthorizationRequest, LinkedIdentity, StoredClaim
from tests.deliveries import deliver
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.lifecycle.refetches import refetched
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_older_sign_in_that_ends_later_is_not_the_newest(service):
    """The events between the two stay superseded."""
    sign_in(Client())
    newest = LinkedIdentity.objects.get().signed_in_at
    browser = Client()
    state = begin(browser)
    AuthorizationRequest.objects.update(
        created_at=newest - timezone.timedelta(minutes=30)
    )
    come_back(browser, state)
    assert is_signed_in(browser)
    assert LinkedIdentity.objects.get().signed_in_at == newest


CLAIMS = ("age_over_18", "unique_human")


def stale(service, kind):
    """From now on the claims are answered from before the stored credential, or without one."""
    service.payload["iat"] = int(time.time()) - 7200
    good = service.good("claims")
    if kind == "no credential":
        good["data"]["credential"] = None
    service.answers["claims"] = good


def proven():
    rows = StoredClaim.objects.exclude(valid_until=None).filter(revoked_at=None)
    return set(rows.values_list("claim_type", flat=True))


@pytest.mark.parametrize("kind", ["older", "no credential"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_an_answer_that_cannot_be_used_is_asked_for_again(service, is_inside, kind):
    """The row says why. A credential that is older could replay a claim that was revoked since."""
    service.disclosed = dict.fromkeys(CLAIMS, True)
    browser = Client()
    sign_in(browser)
    before = LinkedIdentity.objects.get()
    stale(service, kind)
    assert sign_in(browser if is_inside else Client()).status_code == 302
    after = LinkedIdentity.objects.get()
    assert proven() == {*CLAIMS}
    assert after.credential_issued_at == before.credential_issued_at
    assert after.credential_expires_at == before.credential_expires_at
    assert (after.last_error, after.refetch_failures) == ("malformed_answer", 0)
    assert after.is_due
    del service.answers["claims"]
    service.payload = {}
    assert refetched(after) == "stored"
    assert LinkedIdentity.objects.get().last_error == ""


@pytest.mark.parametrize("kind", ["older", "no credential"])
def test_a_new_consent_brings_back_no_proof_of_the_one_before(service, kind):
    """Its claims went with it, so there is nothing that could stay."""
    sign_in(Client())
    deliver("consent.revoked")
    revoked = LinkedIdentity.objects.get()
    assert revoked.consent == "revoked"
    an_hour_ago = timezone.now() - timedelta(hours=1)
    LinkedIdentity.objects.update(revoked_at=an_hour_ago)
    stale(service, kind)
    LinkedIdentity.objects.update(credential_issued_at=timezone.now())
    sign_in(Client())
    identity = LinkedIdentity.objects.get()
    assert (identity.consent, proven()) == ("granted", set())
    assert (identity.last_error, identity.is_due) == ("malformed_answer", True)


def without_claims(service):
    service.token = {"scope": "profile:read"}
    sign_in(Client())
    service.token = {}


@pytest.mark.parametrize("end", ["consent.revoked", "without claims"])
def test_a_new_consent_brings_back_no_claim_that_was_revoked_in_the_one_before(
    service, end
):
    """A cache still has the credential, which a younger one has replaced since."""
    now = int(time.time())
    service.payload["iat"] = now - 7200
    former = service.good("claims")
    sign_in(Client())
    LinkedIdentity.objects.update(signed_in_at=timezone.now() - timedelta(hours=2))
    deliver("claim.revoked", at=timezone.now() - timedelta(hours=1))
    service.payload["iat"] = now - 1800
    service.disclosed = {}
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert not StoredClaim.objects.exists()
    if end == "consent.revoked":
        deliver(end, at=timezone.now() - timedelta(minutes=20))
    else:
        without_claims(service)
    service.answers["claims"] = former
    assert sign_in(Client()).status_code == 302
    assert proven() == set()
    assert LinkedIdentity.objects.get().is_due
    del service.answers["claims"]
    service.payload["iat"] = now
    service.disclosed = {"unique_human": True}
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert proven() == {"unique_human"}


def test_a_code_from_the_future_outlasts_no_rejection(service):
    """The service's clock may be ahead."""
    service.connect["issued_at"] = (
        timezone.now() + timezone.timedelta(days=365)
    ).isoformat()
    hand_in(browser_of(make_user()))
    deliver("kyc.rejected")
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


def test_a_code_brings_no_level_that_is_older_than_the_known_one(service):
    user, now = make_user(), timezone.now()
    make_identity_by_code(user, kyc_status="rejected", kyc_said_at=now)
    service.connect["issued_at"] = (now - timezone.timedelta(minutes=1)).isoformat()
    hand_in(browser_of(user))
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


def test_a_code_that_somebody_else_redeemed_is_used(service):
    """Also for a person who has an identity."""
    hand_in(browser_of(make_user()))
    eve = make_identity(make_user("eve"), subject="subject-2").user
    assert "connect_code_used" in hand_in(browser_of(eve)).content.decode()


WAYS_IN = ["a new link", "a new account", "a first link"]


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_an_older_credential_proves_nothing_by_any_way_in(service, way_in):
    """The site does not know any more which claim was revoked, so none counts. A younger does."""
    now = int(time.time())
    service.payload["iat"] = now - 60
    service.disclosed = dict.fromkeys(CLAIMS, True)
    if way_in != "a first link":
        sign_in(Client())
    revoked_at = timezone.now() - timedelta(seconds=30)
    deliver("claim.revoked", at=revoked_at, claim_type="age_over_18")
    browser = Client()
    if way_in == "a new account":
        User.objects.get().delete()
    elif way_in == "a new link":
        User.objects.update(password="x")
        disconnecting.disconnect(LinkedIdentity.objects.get())
        browser = browser_of(User.objects.get())

    sign_in(browser)

    assert proven() == set()
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert proven() == set()
    service.payload["iat"] = now - 10
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert proven() == {*CLAIMS}


def test_a_younger_credential_proves_it_at_once(service):
    """Whatever was revoked before."""
    deliver("claim.revoked", at=timezone.now() - timedelta(seconds=30))
    service.payload["iat"] = int(time.time()) - 28
    sign_in(Client())
    assert proven() == {"age_over_18"}
