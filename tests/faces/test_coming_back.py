"""Disconnecting locks nobody out, and hides nobody from their own deletion request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.erasure import erasure, retention
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    FormerLink,
    LinkedIdentity,
    LinkedVia,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.faces.conftest import begin, come_back, sign_in
from tests.faces.connect.pages import LOCAL
from tests.hostile import HostileService
from tests.records import LONG_AGO, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db(transaction=True)
SECRETS = ["a-webhook-secret-for-tests-alone"]


@pytest.fixture
def site(service: HostileService) -> Any:
    with override_settings(DJANGO_IDENTITY={"default": service.settings(WEBHOOK_SECRETS=SECRETS)}):
        yield service


def signed_in_as(client: Client) -> str:
    return client.get("/").content.decode()


def disconnect(client: Client, *alias: str) -> Any:
    return client.post(reverse("identity:disconnect", args=alias))


def sign_in_as(user: User) -> Client:
    client = Client()
    client.force_login(user, backend=LOCAL)
    return client


def request_deletion() -> None:
    deliver("data.deletion_requested", subject="subject-1")
    erasure.retry_pending()
    erasure.retry_pending()


def test_the_same_identity_opens_the_same_account(client: Client, site: HostileService) -> None:
    """It had no other way in; what was known about it before is known again."""
    sign_in(client)
    user = User.objects.get()
    page = client.get(reverse("identity:disconnect"))
    assert "this account opens again" in page.text
    disconnect(client)
    assert signed_in_as(client) == ""
    assert not LinkedIdentity.objects.exists()
    sign_in(client)
    assert signed_in_as(client) == user.username
    identity = LinkedIdentity.objects.get()
    assert (identity.user, identity.account_made, identity.linked_via) == (user, True, "oauth")
    assert not FormerLink.objects.exists()


def test_no_subject_stays_in_the_clear(client: Client, site: HostileService) -> None:
    """Nor in the events that were stored before, nor in later ones."""
    sign_in(client)
    deliver("kyc.verified", subject="subject-1", event_id="before")
    disconnect(client)
    deliver("kyc.verified", subject="subject-1", event_id="after")
    assert set(WebhookEvent.objects.values_list("subject", "payload")) == {("", None)}
    former = FormerLink.objects.get()
    assert "subject-1" not in str(FormerLink.objects.values().get())
    assert set(WebhookEvent.objects.values_list("subject_digest", flat=True)) == {
        former.subject_digest
    }


def test_the_download_says_what_stays(client: Client, site: HostileService) -> None:
    """Also for a person without an identity."""
    sign_in(client)
    deliver("kyc.verified", subject="subject-1")
    user = User.objects.get()
    disconnect(client)
    held = json.loads("".join(map(bytes.decode, sign_in_as(user).get("/identity/download/"))))
    assert held["formerlink"][0]["application"] == "default"
    assert [event["payload"] for event in held["webhookevent"]] == [None]
    assert held["linkedidentity"] == []
    assert "Former links" in sign_in_as(user).get("/identity/account/").text


def test_with_a_password_the_identity_stays_out(client: Client, site: HostileService) -> None:
    """Who disconnects an identity from such an account may want to keep its person out."""
    user = make_user(email="other@example.org")
    make_identity(user, account_made=False)
    owner = sign_in_as(user)
    assert "Sign in with your password" in owner.get(reverse("identity:disconnect")).text
    disconnect(owner)
    sign_in(client)
    assert signed_in_as(client) not in ("", user.username)


class Welcoming(IdentityPolicy):
    def may_come_back(self, user: Any) -> bool:
        return True


def test_the_policy_may_let_it_back_in(client: Client, service: HostileService) -> None:
    make_identity(user := make_user(email="other@example.org"))
    given = service.settings(POLICY=f"{__name__}.Welcoming")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        disconnect(sign_in_as(user))
        sign_in(client)
        assert signed_in_as(client) == user.username


def test_linking_again_from_the_account(site: HostileService) -> None:
    """The account is still one that the identity made."""
    make_identity(user := make_user())
    owner = sign_in_as(user)
    disconnect(owner)
    sign_in(owner)
    assert LinkedIdentity.objects.get().account_made
    assert not FormerLink.objects.exists()


def test_a_code_leaves_no_way_in(site: HostileService) -> None:
    """It may have been another person's code."""
    make_identity_by_code(user := make_user())
    disconnect(sign_in_as(user))
    assert not FormerLink.objects.exists()


def test_a_disabled_account_stays_shut(client: Client, site: HostileService) -> None:
    """And the person gets no second one."""
    sign_in(client)
    disconnect(client)
    User.objects.update(is_active=False)
    response = sign_in(client)
    assert (response.status_code, "user_inactive" in response.text) == (403, True)
    assert User.objects.count() == 1


def test_a_revocation_meanwhile_counts(client: Client, site: HostileService) -> None:
    """A sign-in that began before it, and ends after the disconnection, is refused."""
    sign_in(client)
    state = begin(other := Client())
    deliver("consent.revoked", subject="subject-1")
    disconnect(sign_in_as(User.objects.get()))
    response = come_back(other, state)
    assert "consent_withdrawn" in response.text
    assert FormerLink.objects.exists()


def test_a_purge_leaves_the_way_back(client: Client, site: HostileService) -> None:
    sign_in(client)
    user = User.objects.get()
    LinkedIdentity.objects.update(consent=Consent.REVOKED, consent_changed_at=LONG_AGO)
    assert retention.purge().identities == 1
    assert not LinkedIdentity.objects.exists()
    sign_in(client)
    assert signed_in_as(client) == user.username


def test_a_deletion_request_finds_the_account(client: Client, site: HostileService) -> None:
    """By the digest that stayed, which goes too."""
    sign_in(client)
    disconnect(client)
    request_deletion()
    user = User.objects.get()
    assert (user.is_active, user.email) == (False, "")
    assert not FormerLink.objects.exists()
    receipt = ErasureReceipt.objects.get()
    assert (receipt.counts["user"], receipt.counts["formerlink"]) == (1, 1)


def test_a_deletion_request_finds_each_account(client: Client, site: HostileService) -> None:
    """Of an identity that was moved to another account the first one is erased as well."""
    sign_in(client)
    disconnect(client)
    second = make_user("second", email="second@example.org")
    sign_in(sign_in_as(second))
    assert LinkedIdentity.objects.get().user == second
    request_deletion()
    assert User.objects.get(username="second").is_active
    assert not User.objects.exclude(username="second").get().is_active
    assert sorted(ErasureReceipt.objects.values_list("account_kept", flat=True)) == ["", "older"]
    assert not FormerLink.objects.exists()
    assert not ErasureReceipt.objects.filter(erased_at=None).exists()


@pytest.mark.parametrize("erases", ["anonymise", "delete"])
def test_the_digest_goes_with_the_account(service: HostileService, erases: str) -> None:
    """An erasure under another identity leaves a receipt for the former one."""
    policy = f"{__name__}.{erases.capitalize()}"
    given = service.settings(WEBHOOK_SECRETS=SECRETS, POLICY=policy)
    with override_settings(DJANGO_IDENTITY={"default": given, "shop": given}):
        make_identity(user := make_user(), application="shop", subject="other")
        disconnect(sign_in_as(user), "shop")
        make_identity(user)
        request_deletion()
        assert not FormerLink.objects.exists()
        applications = ErasureReceipt.objects.values_list("application", flat=True)
        assert sorted(applications) == ["default", "shop"]


class Anonymise(IdentityPolicy):
    erasure = "anonymise"


class Delete(IdentityPolicy):
    erasure = "delete"


def test_an_erased_strangers_link_leaves_the_owners_sign_ins(site: HostileService) -> None:
    """What the owner of the account has started is theirs."""
    make_identity_by_code(user := make_user(), account_made=False, subject="a-stranger")
    owner = sign_in_as(user)
    begin(owner, "/adults/")
    deliver("data.deletion_requested", subject="a-stranger")
    erasure.retry_pending()
    assert ErasureReceipt.objects.get().account_kept == "older"
    assert AuthorizationRequest.objects.get().user == user


@pytest.mark.parametrize(
    ("password", "made", "code"),
    [
        (None, True, "email_held_by_identity"),
        (None, False, "email_taken"),
        ("a password", True, "email_taken"),
    ],
)
def test_an_address_that_only_an_identity_opens(
    client: Client, site: HostileService, password: str | None, made: bool, code: str
) -> None:
    """Nobody is sent to a password that does not exist."""
    user = User.objects.create_user("grace", "ada@example.org", password)
    make_identity(user, subject="graces-own", account_made=made)
    response = sign_in(client)
    assert response.status_code == 403
    assert code in response.text
    assert ("Sign in to that account with your password" in response.text) is (
        code == "email_taken"
    )


@pytest.mark.parametrize("way", ["page", "api"])
@pytest.mark.parametrize(
    "stored", [{"application": "renamed"}, {"environment": "live"}, {"application": "default"}]
)
def test_what_is_stored_can_be_disconnected(
    site: HostileService, way: str, stored: dict[str, str]
) -> None:
    """Under an alias that the settings no longer have, or another environment."""
    make_identity(user := make_user(), **stored)
    owner = sign_in_as(user)
    alias = stored.get("application", "default")
    assert f"/identity/disconnect/{alias}/" in owner.get("/identity/account/").text
    name = "identity:disconnect" if way == "page" else "identity:api:disconnect"
    if way == "page":
        assert owner.get(reverse(name, args=[alias])).status_code == 200
    assert owner.post(reverse(name, args=[alias])).status_code == 200
    assert not LinkedIdentity.objects.exists()
    assert FormerLink.objects.get().linked_via == LinkedVia.OAUTH


def test_an_alias_that_nothing_names_is_not_found(site: HostileService) -> None:
    make_identity(make_user("somebody"), application="renamed")
    assert disconnect(sign_in_as(make_user()), "renamed").status_code == 404
    assert disconnect(Client(), "renamed").status_code == 404
    assert LinkedIdentity.objects.exists()


def test_the_purge_of_a_removed_application(site: HostileService) -> None:
    make_identity(
        make_user(), application="renamed", environment="live", consent=Consent.REVOKED,
        consent_changed_at=LONG_AGO, revoked_at=timezone.now(),
    )  # fmt: skip
    assert retention.purge().identities == 1
    assert FormerLink.objects.get().application == "renamed"
