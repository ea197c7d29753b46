"""Other people's accounts and codes: a removed stranger, and somebody else's pasted code."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle.arriving import connect as codes
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt, LinkedIdentity, LinkedVia
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.example_counts import spread
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in, signed_in_as
from tests.views.connect.pages import browser_of, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(service: FakeService) -> FakeService:
    service.profile["email"] = "stranger@example.net"
    return service


def disconnect(browser: Client) -> str:
    return browser.post(reverse("identity:disconnect")).content.decode()


def operator_disconnects(session: Client) -> None:
    assert interventions.disconnect(list(LinkedIdentity.objects.all())) == []


def is_revoked(_session: Client) -> None:
    deliver("consent.revoked")


def is_erased(session: Client) -> None:
    deliver("data.deletion_requested")
    pending_erasures.retry()


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
    ("history", "kind"),
    spread(itertools.product(HISTORIES, ACCOUNTS), every=4),
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


def test_a_code_for_a_revoked_link_is_refused(site):
    """It restores nothing, and the page says what does."""
    user = make_user("owner")
    sign_in(browser_of(user))
    deliver("consent.revoked")
    before = LinkedIdentity.objects.values().get()
    browser = browser_of(user)

    page = refused(hand_in(browser), "linked_before", 409)

    assert "was connected to this account before. Sign in with it." in page
    assert LinkedIdentity.objects.values().get() == before
    assert sign_in(browser).status_code == 302
    assert LinkedIdentity.objects.get().consent == "granted"


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
    pending_erasures.retry()
    user.refresh_from_db()
    assert not user.is_active
    assert ErasureReceipt.objects.get().erased_at is not None


# A pasted code may be another person's: the page says whose it was, and one press undoes it


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
def test_staff_are_not_linked_by_a_code(service, browser, monkeypatch, flag):
    User.objects.update(**{flag: True})
    refused(hand_in(browser), "link_not_allowed", 403)
    assert not LinkedIdentity.objects.exists()
    assert sign_in(browser).status_code == 302
    LinkedIdentity.objects.all().delete()
    monkeypatch.setattr(IdentityPolicy, "may_link", lambda *_given, **_proven: True)
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302


def test_a_code_writes_no_field_of_the_account(service, browser, updates):
    """What the site takes over at a sign-in is not taken from somebody else's code."""
    updates(lambda profile: {"first_name": profile.first_name})
    hand_in(browser)
    hand_in(browser, "CNX-AB12-CD35")
    assert User.objects.get().first_name == ""
    sign_in(browser)
    assert User.objects.get().first_name == "Ada"
    User.objects.update(first_name="")
    hand_in(browser, "CNX-AB12-CD36")
    assert User.objects.get().first_name == ""


def test_the_page_after_the_code_says_whose_it_was_and_one_press_undoes_it(
    service,
    browser,
    user,
):
    """First name, initial and masked address. Nobody is signed out by a press, nor by a second."""
    response = hand_in(browser, next="/loans/")
    assert response["Location"] == "/identity/connected/?next=%2Floans%2F"
    page = browser.get(response["Location"]).content.decode()
    assert '<p role="status">You are verified at level 2.</p>' in page
    assert 'href="/loans/"' in page
    assert "ada@example.org" not in page
    assert "Ada Obi" not in page
    for shown in (page, browser.get("/identity/account/").content.decode()):
        assert "Ada O., a***@example.org" in shown
        assert 'action="/identity/connected/"' in shown

    for status in (200, 302):
        assert browser.post("/identity/connected/").status_code == status
        assert signed_in_as(browser) == user.username
    assert not LinkedIdentity.objects.exists()
    stranger = Client()
    sign_in(stranger)
    assert signed_in_as(stranger) not in ("", user.username), "an account of their own"


def named(first: str, last: str = "", email: str = "") -> dict[str, str]:
    return {"first_name": first, "last_name": last, "email": email}


HINDI = "\u0939\u093f\u0928\u094d\u0926\u0940"
SHOWN = [
    (named("Ada"), "Ada"),
    (named("", "Obi", "a@b.org"), "O., ***@b.org"),
    (named("", "", "no address"), ""),
    ({}, ""),
    (None, ""),
    (named("Pay at evil.example"), "Pay at evil example"),
    (named("https://evil.example/x?y=1"), "https evil example x"),
    (named("Ada", ".evil"), "Ada e."),
    (named("www.evil.example", "1"), "www evil example"),
    (named("a" * 60, "b" * 60), f"{'a' * 20} b."),
    (named("Call +1 555 0100 now"), "Call now"),
    (named("J. R.", "R."), "J R R."),
    (named("Jean-Luc", "d'Arc"), "Jean-Luc d."),
    (named(HINDI), HINDI),
    (named("evil\u3002example"), "evil example"),
    (named("a_b@c"), "a b c"),
]


@pytest.mark.parametrize(("shared", "shown"), SHOWN)
def test_a_stranger_puts_no_words_on_our_page_or_into_our_mail(
    service,
    browser,
    mailoutbox,
    shared,
    shown,
):
    """Of a name there are letters alone, and few: no address of a page, no number to call."""
    kyc = service.connect_result()["data"]["kyc"]
    service.connect = {"data": {"profile": shared, "kyc": kyc}}
    page = browser.get(hand_in(browser)["Location"]).content.decode()
    identity = LinkedIdentity.objects.get()
    assert identity.connect_person == shown
    assert identity.kyc_level == "level_2"
    assert (shown in page) if shown else ("did not say whose" in page)
    [notice] = mailoutbox
    assert shown in notice.body
    assert "evil.example" not in notice.body + page


MEANWHILE: dict[str, Callable[[LinkedIdentity], object]] = {
    "a sign-in confirms it": lambda identity: sign_in(browser_of(identity.user)),
    "an operator changes it": lambda identity: LinkedIdentity.objects.filter(
        pk=identity.pk,
    ).change(linked_via="oauth"),
    "it is gone": lambda identity: identity.delete(),
}


@pytest.mark.parametrize("happens", MEANWHILE.values(), ids=MEANWHILE)
def test_a_press_undoes_nothing_that_was_confirmed_meanwhile(
    service,
    browser,
    monkeypatch,
    happens,
):
    """When its press has been read, and nothing is locked yet."""
    hand_in(browser)
    look = codes.identity_of

    def looked(*given: Any, **more: Any) -> LinkedIdentity | None:
        identity = look(*given, **more)
        if identity is not None:
            happens(LinkedIdentity.objects.get(pk=identity.pk))
        return identity

    monkeypatch.setattr(codes, "identity_of", looked)
    response = browser.post("/identity/connected/")

    assert response.status_code == 302
    assert response["Location"] == "/identity/account/"
    for identity in LinkedIdentity.objects.all():
        assert identity.linked_via == "oauth"


def test_whoever_entered_no_code_has_no_such_page(service, client, browser, user):
    path = "/identity/connected/"
    for method in (client.get, client.post):
        assert method(path)["Location"].startswith("/identity/login/")
    assert browser.get(path)["Location"] == "/identity/account/"

    make_identity(user)
    assert browser.get(f"{path}?next=/loans/")["Location"] == "/loans/"
    browser.post(path)
    assert LinkedIdentity.objects.exists()
    assert signed_in_as(browser) == user.username
