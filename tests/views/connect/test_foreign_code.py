"""A pasted code may be another person's: the page says whose it was, and one press undoes it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_identity.lifecycle.arriving import connect as codes
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.factories import make_identity
from tests.sign_in import sign_in, signed_in_as
from tests.views.connect.pages import browser_of, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
def test_staff_are_not_linked_by_a_code(service, browser, monkeypatch, flag):
    """Unless the site's policy says so. A full sign-in links them."""
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
    service, browser, user
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
    (named("Ada"), "Ada"), (named("", "Obi", "a@b.org"), "O., ***@b.org"),
    (named("", "", "no address"), ""), ({}, ""), (None, ""),
    (named("Pay at evil.example"), "Pay at evil example"),
    (named("https://evil.example/x?y=1"), "https evil example x"),
    (named("Ada", ".evil"), "Ada e."), (named("www.evil.example", "1"), "www evil example"),
    (named("a" * 60, "b" * 60), f"{'a' * 20} b."),
    (named("Call +1 555 0100 now"), "Call now"), (named("J. R.", "R."), "J R R."),
    (named("Jean-Luc", "d'Arc"), "Jean-Luc d."), (named(HINDI), HINDI),
    (named("evil\u3002example"), "evil example"), (named("a_b@c"), "a b c"),
]  # fmt: skip


@pytest.mark.parametrize(("shared", "shown"), SHOWN)
def test_a_stranger_puts_no_words_on_our_page_or_into_our_mail(
    service, browser, mailoutbox, shared, shown
):
    """Of a name there are letters alone, and few: no address of a page, no number to call.

    A page without a name says that it knows none.
    """
    kyc = service.connect_result()["data"]["kyc"]
    service.connect = {"data": {"profile": shared, "kyc": kyc}}
    page = browser.get(hand_in(browser)["Location"]).content.decode()
    identity = LinkedIdentity.objects.get()
    assert (identity.connect_person, identity.kyc_level) == (shown, "level_2")
    assert (shown in page) if shown else ("did not say whose" in page)
    [notice] = mailoutbox
    assert shown in notice.body
    assert "evil.example" not in notice.body + page


MEANWHILE: dict[str, Callable[[LinkedIdentity], object]] = {
    "a sign-in confirms it": lambda identity: sign_in(browser_of(identity.user)),
    "an operator changes it": lambda identity: LinkedIdentity.objects.filter(
        pk=identity.pk
    ).change(linked_via="oauth"),
    "it is gone": lambda identity: identity.delete(),
}


@pytest.mark.parametrize("happens", MEANWHILE.values(), ids=MEANWHILE)
def test_a_press_undoes_nothing_that_was_confirmed_meanwhile(
    service, browser, monkeypatch, happens
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

    assert (response.status_code, response["Location"]) == (302, "/identity/account/")
    for identity in LinkedIdentity.objects.all():
        assert identity.linked_via == "oauth"


def test_whoever_entered_no_code_has_no_such_page(service, client, browser, user):
    """They go to sign in, to their account, or on after a sign-in; the identity stays."""
    path = "/identity/connected/"
    for method in (client.get, client.post):
        assert method(path)["Location"].startswith("/identity/login/")
    assert browser.get(path)["Location"] == "/identity/account/"

    make_identity(user)
    assert browser.get(f"{path}?next=/loans/")["Location"] == "/loans/"
    browser.post(path)
    assert LinkedIdentity.objects.exists()
    assert signed_in_as(browser) == user.username
