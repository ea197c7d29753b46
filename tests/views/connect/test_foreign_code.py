"""A pasted code may be another person's: the page says whose it was, and one press undoes it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.utils import timezone

from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in
from tests.views.connect.pages import LOCAL, browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


class TakesOver(IdentityPolicy):
    """Names follow the identity, and staff may use a code."""

    def changed_user_fields(self, user: Any, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {"first_name": profile.first_name}

    def may_link(self, user: Any, profile: Any) -> bool:
        return True


def taking_over(service: FakeService) -> override_settings:
    settings = service.settings(POLICY=f"{__name__}.TakesOver")
    return override_settings(DJANGO_IDENTITY={"default": settings})


def signed_in_as(client: Client) -> str:
    return client.get("/").content.decode()


def code_of(response: HttpResponse) -> str:
    (code,) = re.findall(r"· <code>([a-z_]+)</code>", response.content.decode())
    return str(code)


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
def test_staff_are_not_linked_by_a_code(
    service: FakeService, browser: Client, user: User, flag: str
) -> None:
    """Unless the site's policy says so. A full sign-in links them."""
    User.objects.update(**{flag: True})
    response = hand_in(browser)
    assert (response.status_code, code_of(response)) == (403, "link_not_allowed")
    assert not LinkedIdentity.objects.exists()
    with taking_over(service):
        assert hand_in(browser, "CNX-AB12-CD35").status_code == 302
    LinkedIdentity.objects.all().delete()
    assert sign_in(browser).status_code == 302


def test_a_code_writes_no_field_of_the_account(
    service: FakeService, browser: Client, user: User
) -> None:
    """What the site takes over at a sign-in is not taken from somebody else's code."""
    with taking_over(service):
        hand_in(browser)
        hand_in(browser, "CNX-AB12-CD35")
        assert User.objects.get().first_name == ""
        sign_in(browser)
        assert User.objects.get().first_name == "Ada"


def test_the_page_after_the_code_says_whose_it_was(service: FakeService, browser: Client) -> None:
    """First name, initial and masked address; the way on, and one press to undo."""
    response = hand_in(browser, next="/loans/")
    assert response["Location"] == "/identity/connected/?next=%2Floans%2F"
    page = browser.get(response["Location"]).content.decode()
    assert "Ada O., a***@example.org" in page
    assert 'href="/loans/"' in page
    assert "ada@example.org" not in page
    assert "Obi" not in page
    assert 'action="/identity/connected/default/"' in page
    account = browser.get("/identity/account/").content.decode()
    assert "Ada O., a***@example.org" in account
    assert 'action="/identity/connected/default/"' in account


def test_one_press_undoes_it(service: FakeService, browser: Client, user: User) -> None:
    """The link goes, and nobody is signed out; a second press changes nothing more."""
    hand_in(browser)
    for status in (200, 302):
        response = browser.post("/identity/connected/")
        assert response.status_code == status
        assert signed_in_as(browser) == user.username
    assert not LinkedIdentity.objects.exists()
    stranger = Client()
    sign_in(stranger)
    assert signed_in_as(stranger) not in ("", user.username), "an account of their own"


def test_undoing_is_a_press_on_a_page_of_ours(service: FakeService, user: User) -> None:
    """No other site can press it, and an address that somebody is led to shows the page only."""
    make_identity_by_code(user)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user, backend=LOCAL)
    assert client.post("/identity/connected/").status_code == 403
    assert client.get("/identity/connected/").status_code == 200
    assert LinkedIdentity.objects.count() == 1


def test_undo_does_not_take_a_confirmed_identity(
    service: FakeService, browser: Client, user: User
) -> None:
    """A page that was left open; disconnecting is what asks first."""
    make_identity(user)
    assert browser.post("/identity/connected/").status_code in (200, 302)
    assert LinkedIdentity.objects.count() == 1
    assert signed_in_as(browser) == user.username


@pytest.mark.parametrize(
    ("shared", "shown"),
    [
        ({"first_name": "Ada", "last_name": "", "email": ""}, "Ada"),
        ({"first_name": "", "last_name": "Obi", "email": "a@b.org"}, "O., ***@b.org"),
        ({"first_name": "", "last_name": "", "email": "no address"}, ""),
        ({}, ""),
    ],
)
def test_as_far_as_the_answer_goes(
    service: FakeService, browser: Client, shared: dict[str, str], shown: str
) -> None:
    """A page without a name says that it knows none."""
    kyc = service.connect_result()["data"]["kyc"]
    service.connect = {"data": {"profile": shared, "kyc": kyc}}
    page = browser.get(hand_in(browser)["Location"]).content.decode()
    assert LinkedIdentity.objects.get().connect_person == shown
    assert (shown in page) if shown else ("did not say whose" in page)


@pytest.mark.parametrize("path", ["/identity/connected/", "/identity/connected/default/"])
def test_nobody_has_no_such_page(service: FakeService, client: Client, path: str) -> None:
    """Whoever is not signed in goes to sign in; whoever has no identity to their account."""
    assert client.get(path)["Location"].startswith("/identity/login/")
    assert client.post(path)["Location"].startswith("/identity/login/")
    assert browser_of(make_user()).get(path)["Location"] == "/identity/account/"


def test_the_page_says_nothing_where_no_code_was(
    service: FakeService, browser: Client, user: User
) -> None:
    """Whoever opens its address after a sign-in goes on instead."""
    make_identity(user)
    assert browser.get("/identity/connected/?next=/loans/")["Location"] == "/loans/"


def test_a_code_restores_no_power_to_sign_in(service: FakeService) -> None:
    """After a revocation: the account is verified again, and the owner signs in the old way."""
    user = make_user()
    make_identity(user, consent="revoked", revoked_at=timezone.now())
    assert hand_in(browser_of(user)).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert (identity.consent, identity.linked_via) == ("granted", "connect")
    stranger = Client()
    assert sign_in(stranger).status_code == 403
    assert not is_signed_in(stranger)
