"""Other people's accounts: a removed stranger, somebody else's code, and whose data is erased."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle.erasure import retry_pending
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt, LinkedIdentity, LinkedVia
from tests.deliveries import SECRET, deliver
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.DJANGO_IDENTITY = {"default": service.settings(WEBHOOK_SECRETS=[SECRET])}
    service.profile["email"] = "stranger@example.net"
    return service


def disconnect(browser: Client) -> str:
    return browser.post(reverse("identity:disconnect")).content.decode()


def operator_disconnects(session: Client) -> None:
    assert interventions.disconnect(list(LinkedIdentity.objects.all())) == []


def is_revoked(session: Client) -> None:
    deliver("consent.revoked")


def is_erased(session: Client) -> None:
    deliver("data.deletion_requested")
    retry_pending()


def is_re_created(session: Client) -> None:
    """Another person's account takes the key of one that was deleted."""
    user = User.objects.get(username="victim")
    key, user_fields = user.pk, {"username": user.username, "email": user.email}
    user.delete()
    User.objects.create(pk=key, **user_fields)


# ``hand_in``: the owner is talked into pasting the stranger's code.
HISTORIES: Mapping[str, Sequence[Callable[[Client], object]]] = {
    "by the owner": (disconnect,),
    "by the operator": (operator_disconnects,),
    "revoked, disconnected": (is_revoked, disconnect),
    "twice": (disconnect, sign_in, disconnect),
    "linked again, by the operator": (disconnect, sign_in, operator_disconnects),
    "revoked, linked again, disconnected": (is_revoked, sign_in, disconnect),
    "erased": (is_erased,),
    "erased, linked again, disconnected": (is_erased, sign_in, disconnect),
    "account re-created": (is_re_created,),
    "disconnected, code pasted": (disconnect, hand_in),
}


@pytest.mark.parametrize("steps", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("kind", ["password", "no password", "is_staff", "is_superuser"])
@pytest.mark.parametrize("applications", [1, 2])
def test_a_removed_stranger_stays_out(
    site: FakeService, settings: Any, applications: int, kind: str,
    steps: Sequence[Callable[[Client], object]],
) -> None:  # fmt: skip
    """Whatever the account and its history, the stranger's account is another one."""
    if applications == 2:
        second = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": ["another-secret"]}
        settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, "second": second}
    user = make_user("victim", email="victim@example.org")
    if kind != "password":
        user.set_unusable_password()
    if kind.startswith("is_"):
        setattr(user, kind, True)
    user.save()
    session = browser_of(user)
    sign_in(session)
    assert LinkedIdentity.objects.get().user == user
    for step in steps:
        step(session)
    by_sign_in = LinkedIdentity.objects.filter(linked_via=LinkedVia.OAUTH)
    assert not by_sign_in.exists()
    stranger = Client()
    sign_in(stranger)
    assert stranger.get("/").content.decode() != user.username
    assert not by_sign_in.filter(user=user.pk).exists()


def test_a_code_on_a_revoked_link_restores_no_power_either(site: FakeService) -> None:
    """The stranger revokes at the service and has the owner paste a code."""
    user = make_user("victim")
    sign_in(browser_of(user))
    deliver("consent.revoked")
    hand_in(browser_of(user))
    assert LinkedIdentity.objects.get().linked_via == LinkedVia.CONNECT
    stranger = Client()
    assert "linked_by_code" in sign_in(stranger).content.decode()
    assert not is_signed_in(stranger)


def test_a_redeemed_code_erases_nobody_elses_account(site: FakeService) -> None:
    """The thief redeems the victim's code and presses "Erase": no account is touched."""
    site.profile["email"] = "victim@example.org"
    sign_in(Client())
    user = User.objects.get()
    user.set_password("a password")
    user.save()
    # The new password has ended the session of the sign-in.
    disconnect(browser_of(user))
    thief = make_user("thief")
    browser = browser_of(thief)
    hand_in(browser)
    assert LinkedIdentity.objects.get().user == thief
    erase = reverse("identity:erase")
    assert browser.get(erase).status_code == 302
    assert browser.post(erase).status_code == 302
    user.refresh_from_db()
    thief.refresh_from_db()
    assert (user.is_active, user.email) == (True, "victim@example.org")
    assert thief.is_active
    assert "Erase my data" not in browser.get(reverse("identity:account")).content.decode()


def test_a_redeemed_code_shows_nothing_of_the_owners_earlier_link(site: FakeService) -> None:
    """What was heard of the subject before it was linked here is the other account's."""
    owner = browser_of(make_user("owner"))
    sign_in(owner)
    deliver("consent.granted")
    disconnect(owner)
    thief = browser_of(make_user("thief"))
    hand_in(thief)
    account = thief.get(reverse("identity:account")).content.decode()
    assert "You gave your consent" not in account
    deliver("consent.granted")
    account = thief.get(reverse("identity:account")).content.decode()
    assert "You gave your consent" in account


def test_the_owner_gets_their_identity_back_from_a_thief(site: FakeService) -> None:
    """They revoke at the service, which deletes the thief's link by code, and sign in."""
    hand_in(browser_of(make_user("thief")))
    owner = Client()
    assert "linked_by_code" in sign_in(owner).content.decode()
    deliver("consent.revoked")
    sign_in(owner)
    assert is_signed_in(owner)
    assert LinkedIdentity.objects.get().user.username != "thief"


def test_the_only_way_in_is_not_disconnected(site: FakeService) -> None:
    """The link that made the account stays until there is a password."""
    browser = Client()
    sign_in(browser)
    page = browser.get(reverse("identity:disconnect")).content.decode()
    assert "has no other way in" in page
    disconnect(browser)
    user = LinkedIdentity.objects.get().user
    user.set_password("a password")
    user.save()
    # A new password ends the sessions of before.
    sign_in(browser)
    page = browser.get(reverse("identity:disconnect")).content.decode()
    assert "will not find your account" in page
    assert reverse("identity:erase") in page
    assert "Disconnected" in disconnect(browser)
    assert not LinkedIdentity.objects.exists()
    assert not is_signed_in(browser)


def test_a_rotated_secret_key_loses_no_deletion(site: FakeService, settings: Any) -> None:
    """Nothing that finds a person rests on the site's key."""
    browser = Client()
    sign_in(browser)
    user = User.objects.get()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", [settings.SECRET_KEY]
    deliver("data.deletion_requested")
    retry_pending()
    user.refresh_from_db()
    assert not user.is_active
    assert ErasureReceipt.objects.get().erased_at is not None
