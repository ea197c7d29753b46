"""Somebody was talked into pasting another person's code: that person does not get in by it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.standing import standing_of
from django_identity.models import ErasureReceipt, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.at_once import at_once
from tests.deliveries import SECRET, deliver
from tests.faces.conftest import begin, come_back, sign_in
from tests.faces.connect.pages import LOCAL, browser_of, hand_in
from tests.hostile import HostileService
from tests.records import make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "tests.faces.connect.test_foreign_code"


class DoorOpen(IdentityPolicy):
    """Codes sign people in."""

    connect_may_sign_in = True


class TakesOver(IdentityPolicy):
    """Names follow the identity."""

    def changed_user_fields(self, user: Any, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {"first_name": profile.first_name}


class StaffByCode(DoorOpen):
    """A site that trusts codes with everything."""

    def may_link(self, user: Any, profile: Any) -> bool:
        return True


class NoStaff(DoorOpen):
    """A site that keeps its staff away from identities."""

    def may_link(self, user: Any, profile: Any) -> bool:
        return not user.is_staff

    def may_sign_in(self, user: Any) -> bool:
        return not user.is_staff


def policy(service: HostileService, kind: type[IdentityPolicy]) -> override_settings:
    settings = service.settings(POLICY=f"{HERE}.{kind.__name__}")
    return override_settings(DJANGO_IDENTITY={"default": settings})


def signed_in_as(client: Client) -> str:
    return client.get("/").content.decode()


def code_of(response: HttpResponse) -> str:
    (code,) = re.findall(r"· <code>([a-z_]+)</code>", response.content.decode())
    return str(code)


# The stranger


def test_the_stranger_does_not_come_in(
    service: HostileService, browser: Client, user: User
) -> None:
    """Whose code was pasted presses the button: a page that says why, and no session."""
    hand_in(browser)
    stranger = Client()
    response = sign_in(stranger)
    assert (response.status_code, code_of(response)) == (403, "linked_by_code")
    assert "/accounts/login/?next=" in response.content.decode()
    assert signed_in_as(stranger) == ""
    assert LinkedIdentity.objects.get().linked_via == "connect"
    assert standing_of(user).has_kyc_level("level_2"), "it verifies all the same"


def test_the_stranger_does_not_come_in_by_the_api(service: HostileService, browser: Client) -> None:
    """The JSON way asks the same question."""
    hand_in(browser)
    stranger = Client()
    state = begin(stranger)
    given = {"state": state, "code": "a-code"}
    response = stranger.post(reverse("identity:api:callback"), given, "application/json")
    assert (response.status_code, response.json()["code"]) == (403, "linked_by_code")
    assert signed_in_as(stranger) == ""


def test_the_stranger_does_not_come_in_by_a_code(service: HostileService, browser: Client) -> None:
    """Where codes sign people in, one that only verified an account still does not."""
    with policy(service, DoorOpen):
        hand_in(browser)
        stranger = Client()
        response = hand_in(stranger, "CNX-AB12-CD35")
    assert (response.status_code, code_of(response)) == (403, "linked_by_code")
    assert signed_in_as(stranger) == ""


def test_a_session_of_such_an_identity_is_none(service: HostileService, user: User) -> None:
    """A session rests on an identity that signs in, whatever put it there."""
    make_identity_by_code(user)
    client = Client()
    client.force_login(user, backend=BACKEND_PATH)
    assert signed_in_as(client) == ""


def test_a_second_application_does_not_help(
    service: HostileService, browser: Client, user: User
) -> None:
    """A way in under one application makes no way in of a code under another."""
    with override_settings(
        DJANGO_IDENTITY={"default": service.settings(), "second": service.settings()}
    ):
        make_identity(user, subject="own-subject")
        browser.post(
            reverse("identity:connect", args=["second"]), {"connect_code": "CNX-AB12-1111"}
        )
        second = LinkedIdentity.objects.get(application="second")
        assert (second.user, second.linked_via) == (user, "connect")
        stranger = Client()
        location = stranger.post(reverse("identity:login", args=["second"]))["Location"]
        state = re.findall(r"state=([^&]+)", location)[0]
        address = reverse("identity:callback", args=["second"])
        response = stranger.get(address, {"code": "a-code", "state": state})
        assert (response.status_code, code_of(response)) == (403, "linked_by_code")
        assert signed_in_as(stranger) == ""
        own = Client()
        own.force_login(user, backend=BACKEND_PATH)
        LinkedIdentity.objects.filter(application="default").update(consent="revoked")
        assert signed_in_as(own) == "", "no session goes on upon the code"


@pytest.mark.parametrize("who", ["owner", "somebody else"])
def test_begun_anonymous_and_finished_signed_in(
    service: HostileService, browser: Client, user: User, who: str
) -> None:
    """A sign-in that the stranger began is not the owner's renewal, whoever is there at its end."""
    hand_in(browser)
    state = begin(shared := Client())
    shared.force_login(user if who == "owner" else make_user("bob"), backend=LOCAL)
    response = come_back(shared, state)
    expected = "linked_by_code" if who == "owner" else "user_changed"
    assert (response.status_code >= 400, code_of(response)) == (True, expected)
    assert LinkedIdentity.objects.get().linked_via == "connect"
    assert sign_in(Client()).status_code == 403


def test_a_code_does_not_confirm_a_code(service: HostileService, browser: Client) -> None:
    """However often the code is renewed by another code."""
    hand_in(browser)
    hand_in(browser, "CNX-AB12-CD35")
    assert sign_in(Client()).status_code == 403


# The owner


def test_the_owner_renews_and_signs_in_from_then_on(
    service: HostileService, browser: Client, user: User
) -> None:
    """The full sign-in from within the account's session is what makes it a way in."""
    hand_in(browser)
    assert sign_in(browser).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert (identity.linked_via, identity.connect_person) == ("oauth", "")
    newcomer = Client()
    assert sign_in(newcomer).status_code == 302
    assert signed_in_as(newcomer) == user.username


def test_a_link_begun_before_the_code(service: HostileService, browser: Client) -> None:
    """Two tabs of one person, the button in one and the code in the other."""
    state = begin(browser)
    hand_in(browser)
    assert come_back(browser, state).status_code == 302
    assert LinkedIdentity.objects.get().linked_via == "oauth"


def test_a_renewal_as_somebody_else_confirms_nothing(
    service: HostileService, browser: Client
) -> None:
    """The owner of the account comes back as themselves, and not as the stranger."""
    hand_in(browser)
    service.subject = "subject-2"
    assert code_of(sign_in(browser)) == "subject_changed"
    service.subject = "subject-1"
    assert sign_in(Client()).status_code == 403


def test_a_code_takes_no_way_in_away(service: HostileService, browser: Client, user: User) -> None:
    """An identity that was linked by a sign-in goes on signing in after a code of the same."""
    make_identity(user)
    hand_in(browser)
    newcomer = Client()
    sign_in(newcomer)
    assert signed_in_as(newcomer) == user.username


def test_an_account_made_by_a_code_is_its_own(service: HostileService, client: Client) -> None:
    """Where codes sign people in, whoever signed up by one comes back by code and by button."""
    with policy(service, DoorOpen):
        hand_in(client)
        name = signed_in_as(client)
        assert name != ""
        by_button, by_code = Client(), Client()
        sign_in(by_button)
        hand_in(by_code, "CNX-AB12-CD35")
        assert signed_in_as(by_button) == signed_in_as(by_code) == name


def test_who_was_linked_by_a_stolen_code_gets_free(
    service: HostileService, browser: Client, user: User
) -> None:
    """They take back their consent at the service, and the button gives them their own account."""
    hand_in(browser)
    for client in (victim := Client(), browser_of(victims_own := make_user("victim"))):
        assert code_of(sign_in(client)) == "linked_by_code"
    LinkedIdentity.objects.update(consent="revoked", consent_changed_at=timezone.now())
    refused = hand_in(browser_of(victims_own), "CNX-AB12-CD36")
    assert code_of(refused) == "subject_taken", "a code proves nobody's name"
    sign_in(victim)
    assert signed_in_as(victim) not in ("", user.username)
    identity = LinkedIdentity.objects.get()
    assert (identity.user.username, identity.linked_via) == (signed_in_as(victim), "oauth")
    assert signed_in_as(browser) == user.username
    assert not standing_of(User.objects.get(pk=user.pk)).is_linked


def test_a_link_whose_consent_comes_back_meanwhile_stays(
    service: HostileService, browser: Client, user: User
) -> None:
    """The sign-in found it abandoned; by the time it would remove the link, it no longer is."""
    hand_in(browser)
    LinkedIdentity.objects.update(consent="revoked", consent_changed_at=timezone.now())
    restored: list[int] = []

    def restore(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        if not restored and sql.startswith("SELECT") and "JOIN" in sql and "subject_digest" in sql:
            restored.append(0)
            restored[0] = LinkedIdentity.objects.update(consent="granted")
        return result

    with connection.execute_wrapper(restore):
        assert code_of(sign_in(Client())) == "linked_by_code"
    assert restored == [1]
    identity = LinkedIdentity.objects.get()
    assert (identity.user, identity.linked_via) == (user, "connect")


def test_a_revoked_link_of_a_sign_in_is_not_taken(
    service: HostileService, browser: Client, user: User
) -> None:
    """An identity that its owner proved here stays with the account, revoked or not."""
    make_identity(user, consent="revoked")
    assert code_of(sign_in(browser_of(make_user("eve")))) == "subject_taken"
    assert LinkedIdentity.objects.get().user == user


def test_a_code_writes_no_field_of_the_account(
    service: HostileService, browser: Client, user: User
) -> None:
    """What the site takes over at a sign-in is not taken from somebody else's code."""
    with policy(service, TakesOver):
        hand_in(browser)
        hand_in(browser, "CNX-AB12-CD35")
        assert User.objects.get().first_name == ""
        sign_in(browser)
        assert User.objects.get().first_name == "Ada"


# Staff


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
@pytest.mark.parametrize(
    ("kind", "status"), [(IdentityPolicy, 403), (NoStaff, 403), (StaffByCode, 302)]
)
def test_staff_are_not_linked_by_a_code(
    service: HostileService, browser: Client, user: User, flag: str,
    kind: type[IdentityPolicy], status: int,
) -> None:  # fmt: skip
    """Unless the site's policy says so."""
    User.objects.update(**{flag: True, "is_staff": True} if kind is NoStaff else {flag: True})
    given = f"{HERE}.{kind.__name__}" if kind is not IdentityPolicy else None
    settings = service.settings(**({"POLICY": given} if given else {}))
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        response = hand_in(browser)
    assert response.status_code == status
    assert LinkedIdentity.objects.exists() is (status == 302)
    if status == 403:
        assert code_of(response) == "link_not_allowed"


def test_a_site_keeps_staff_from_linking_at_all(
    service: HostileService, browser: Client, user: User
) -> None:
    """By the full sign-in, too, and by renewing what a code linked before they were staff."""
    with policy(service, NoStaff):
        hand_in(browser)
        User.objects.update(is_staff=True)
        assert code_of(sign_in(browser)) == "link_not_allowed"
        assert LinkedIdentity.objects.get().linked_via == "connect"
        LinkedIdentity.objects.all().delete()
        assert code_of(sign_in(browser)) == "link_not_allowed"
    assert not LinkedIdentity.objects.exists()


def test_staff_link_and_sign_in_by_the_full_sign_in(
    service: HostileService, browser: Client, user: User
) -> None:
    """The default refuses codes, and nothing else."""
    User.objects.update(is_staff=True, is_superuser=True)
    assert sign_in(browser).status_code == 302
    newcomer = Client()
    sign_in(newcomer)
    assert signed_in_as(newcomer) == user.username


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
@pytest.mark.parametrize("way", ["code", "button"])
def test_staff_do_not_sign_in_by_a_code(
    service: HostileService, client: Client, flag: str, way: str
) -> None:
    """Nor by the button, where nothing but a code ever stood behind the identity."""
    with policy(service, DoorOpen):
        hand_in(Client())
        User.objects.update(**{flag: True})
        response = hand_in(client, "CNX-AB12-CD35") if way == "code" else sign_in(client)
        assert (response.status_code, code_of(response)) == (403, "sign_in_not_allowed")
    assert signed_in_as(client) == ""


def test_a_site_keeps_staff_from_signing_in(
    service: HostileService, browser: Client, user: User
) -> None:
    """Whatever they were linked by."""
    with policy(service, NoStaff):
        sign_in(browser)
        User.objects.update(is_staff=True)
        newcomer = Client()
        assert code_of(sign_in(newcomer)) == "sign_in_not_allowed"
        assert signed_in_as(newcomer) == ""
        assert sign_in(browser).status_code == 302, "renewing signs nobody in"


# The page after the code


def test_the_page_after_the_code_says_whose_it_was(
    service: HostileService, browser: Client
) -> None:
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


def test_one_press_undoes_it(service: HostileService, browser: Client, user: User) -> None:
    """The link goes, and nobody is signed out; a second press changes nothing more."""
    hand_in(browser)
    for _ in range(2):
        response = browser.post("/identity/connected/")
        assert response.status_code == 200
        assert signed_in_as(browser) == user.username
    assert not LinkedIdentity.objects.exists()
    stranger = Client()
    sign_in(stranger)
    assert signed_in_as(stranger) not in ("", user.username), "an account of their own"


def test_undoing_is_a_press_on_a_page_of_ours(service: HostileService, user: User) -> None:
    """No other site can press it, and an address that somebody is led to shows the page only."""
    make_identity_by_code(user)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user, backend=LOCAL)
    assert client.post("/identity/connected/").status_code == 403
    assert client.get("/identity/connected/").status_code == 200
    assert LinkedIdentity.objects.count() == 1


def test_undo_does_not_take_a_confirmed_identity(
    service: HostileService, browser: Client, user: User
) -> None:
    """A page that was left open; disconnecting is what asks first."""
    make_identity(user)
    assert browser.post("/identity/connected/").status_code in (200, 302)
    assert LinkedIdentity.objects.count() == 1
    assert signed_in_as(browser) == user.username


def test_who_came_in_by_a_strangers_code_leaves_by_one_press(
    service: HostileService, client: Client
) -> None:
    """Where codes sign people in: the page says as whom, and the press signs out."""
    with policy(service, DoorOpen):
        response = hand_in(client)
        assert "Ada O., a***@example.org" in client.get(response["Location"]).content.decode()
        client.post("/identity/connected/")
        assert signed_in_as(client) == ""
        assert LinkedIdentity.objects.count() == 1


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
    service: HostileService, browser: Client, shared: dict[str, str], shown: str
) -> None:
    """A page without a name says that it knows none."""
    kyc = service.connect_result()["data"]["kyc"]
    service.connect = {"data": {"profile": shared, "kyc": kyc}}
    page = browser.get(hand_in(browser)["Location"]).content.decode()
    assert LinkedIdentity.objects.get().connect_person == shown
    assert (shown in page) if shown else ("did not say whose" in page)


def test_the_json_way_says_whose_it_was(service: HostileService, browser: Client) -> None:
    """A frontend can show it and offer to disconnect."""
    given = {"connect_code": "CNX-AB12-CD34"}
    response = browser.post(reverse("identity:api:connect"), given, "application/json")
    assert response.json()["connect_person"] == "Ada O., a***@example.org"
    assert response.json()["linked_via"] == "connect"


@pytest.mark.parametrize("path", ["/identity/connected/", "/identity/connected/default/"])
def test_nobody_has_no_such_page(service: HostileService, client: Client, path: str) -> None:
    """Whoever is not signed in goes to sign in; whoever has no identity to their account."""
    assert client.get(path)["Location"].startswith("/identity/login/")
    assert client.post(path)["Location"].startswith("/identity/login/")
    assert browser_of(make_user()).get(path)["Location"] == "/identity/account/"


def test_the_page_says_nothing_where_no_code_was(
    service: HostileService, browser: Client, user: User
) -> None:
    """Whoever opens its address after a sign-in, or a revocation, goes on instead."""
    identity = make_identity_by_code(user)
    for changed in ({"consent": "revoked"}, {"consent": "granted", "linked_via": "oauth"}):
        LinkedIdentity.objects.filter(pk=identity.pk).update(**changed)
        response = browser.get("/identity/connected/?next=/loans/")
        assert response["Location"] == "/loans/"


@pytest.mark.parametrize("moment", ["while linked", "after undoing", "in between"])
def test_the_strangers_deletion_does_not_take_the_account(
    service: HostileService, browser: Client, user: User, moment: str
) -> None:
    """What is theirs goes; the account, its sessions and its way in stay."""
    listening = service.settings(WEBHOOK_SECRETS=[SECRET])
    with override_settings(DJANGO_IDENTITY={"default": listening}):
        hand_in(browser)
        if moment == "after undoing":
            browser.post("/identity/connected/")
        deliver("data.deletion_requested")
        if moment == "in between":
            browser.post("/identity/connected/")
        erasure.retry_pending()
        assert ErasureReceipt.objects.get().erased_at is not None
    assert not LinkedIdentity.objects.exists()
    assert signed_in_as(browser) == user.username
    kept = User.objects.get()
    assert (kept.is_active, kept.email) == (True, "other@example.org")
    assert kept.check_password("a password")


def test_getting_free_in_two_browsers_at_once(
    service: HostileService, browser: Client, user: User
) -> None:
    """One account of their own, and both browsers are signed in to it."""
    hand_in(browser)
    LinkedIdentity.objects.update(consent="revoked", consent_changed_at=timezone.now())
    browsers = [Client(), Client()]
    at_once([lambda each=each: sign_in(each) for each in browsers])
    names = {signed_in_as(each) for each in browsers}
    assert names == {LinkedIdentity.objects.get().user.username}
    assert names.isdisjoint({"", user.username})
    assert User.objects.count() == 2
