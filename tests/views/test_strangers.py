"""Other people's accounts: a removed stranger, somebody else's code, and whose data is erased."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle.leaving.erasure import retry_pending
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
)
from tests.deliveries import deliver
from tests.example_counts import spread
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(service: FakeService) -> FakeService:
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
Steps = Sequence[Callable[[Client], object]]
HISTORIES: Mapping[str, Steps] = {
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
    "revoked, code pasted, disconnected": (is_revoked, hand_in, disconnect),
}


ACCOUNTS = ("password", "no password", "is_staff", "is_superuser")


@pytest.mark.parametrize(
    ("history", "kind"), spread(itertools.product(HISTORIES, ACCOUNTS), every=4)
)
def test_a_removed_stranger_stays_out(site, history, kind):
    """Whatever the account and its history, the stranger's account is another one."""
    user = make_user("victim", email="victim@example.org")
    if kind != "password":
        user.set_unusable_password()
    if kind.startswith("is_"):
        setattr(user, kind, True)
    user.save()
    session = browser_of(user)
    sign_in(session)
    assert LinkedIdentity.objects.get().user == user
    for step in HISTORIES[history]:
        step(session)
    by_sign_in = LinkedIdentity.objects.filter(linked_via=LinkedVia.OAUTH)
    assert not by_sign_in.exists()
    stranger = Client()
    sign_in(stranger)
    assert stranger.get("/").content.decode() != user.username
    assert not by_sign_in.filter(user=user.pk).exists()


def test_a_redeemed_code_shows_nothing_of_the_owners_earlier_link(site):
    """What was heard of the subject before it was linked here is the other account's."""
    owner = browser_of(make_user("owner"))
    sign_in(owner)
    deliver("consent.granted")
    disconnect(owner)
    thief = browser_of(make_user("thief"))
    hand_in(thief)
    account = reverse("identity:account")
    assert "You gave your consent" not in thief.get(account).text
    deliver("consent.granted")
    assert "You gave your consent" in thief.get(account).text


def test_the_only_way_in_is_not_disconnected(site):
    """The link that made the account stays until there is a password."""
    browser, address = Client(), reverse("identity:disconnect")
    sign_in(browser)
    assert "has no other way in" in browser.get(address).text
    disconnect(browser)

    user = LinkedIdentity.objects.get().user
    user.set_password("a password")
    user.save()
    # A new password ends the sessions of before.
    sign_in(browser)

    page = browser.get(address).text
    assert "will not find your account" in page
    assert reverse("identity:erase") in page
    assert "Disconnected" in disconnect(browser)
    assert not LinkedIdentity.objects.exists()
    assert not is_signed_in(browser)


def test_a_rotated_secret_key_loses_no_deletion(site, settings):
    """Nothing that finds a person rests on the site's key."""
    browser = Client()
    sign_in(browser)
    user = User.objects.get()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key"
    deliver("data.deletion_requested")
    retry_pending()
    user.refresh_from_db()
    assert not user.is_active
    assert ErasureReceipt.objects.get().erased_at is not None
