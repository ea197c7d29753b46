"""Who may be signed in as whom, and where they go next."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.exceptions import IdentityError
from django_identity.models import LinkedIdentity
from tests.at_once import at_once, meeting_at_update
from tests.faces.bad_input.refusals import nobody_was_made, refused
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example", "/\\evil.example", "\\\\evil.example", "https:evil.example",
        "https://evil.example/", "http:///evil.example", "javascript:alert(1)", "/\tevil",
        "/\n/evil.example", "\t//evil.example", "/\r\nX: y", "%2F%2Fevil.example",
        "//testserver@evil.example", "///evil.example", "/" + "a" * 8192, "/" + "a" * 2000,
        " //evil.example", "data:x",
    ],
)  # fmt: skip
def test_next_stays_on_this_site(client: Client, service: HostileService, given: str) -> None:
    """Only a path of this site is a place to go to; a link to our own page carries no other."""
    page = client.get(reverse("identity:login"), {"next": given})
    assert page.context["next"] == ""
    assert not any(part in page.content.decode() for part in ("evil", "data:x", "aaaa", "alert"))
    assert sign_in(client, given)["Location"] == "/"


def test_next_is_not_taken_from_the_callback(client: Client, service: HostileService) -> None:
    """Where to go was settled when the button was pressed."""
    state = begin(client, "/adults/")
    assert come_back(client, state, next="//evil.example")["Location"] == "/adults/"


def test_a_forged_host(client: Client, service: HostileService) -> None:
    """The callback address follows no host that is not ours."""
    assert client.post(reverse("identity:login"), HTTP_HOST="evil.example").status_code == 400
    fixed = service.settings(REDIRECT_URI="https://site.example/identity/callback/")
    with override_settings(ALLOWED_HOSTS=["*"], DJANGO_IDENTITY={"default": fixed}):
        response = client.post(reverse("identity:login"), HTTP_HOST="evil.example")
    assert "evil" not in response["Location"]


def test_a_disabled_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A disabled account is not opened by an identity."""
    make_identity(make_user("ada", is_active=False))
    refused(sign_in(client), "user_inactive", caplog)
    assert client.get("/").content == b""


def test_a_user_deleted_meanwhile(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A link whose user is gone goes nowhere."""
    user = make_user()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    state = begin(client)
    user.delete()
    refused(come_back(client, state), "session_ended", caplog)


@pytest.mark.parametrize("becomes", ["deleted", "disabled"])
def test_a_user_who_is_gone_when_the_service_has_answered(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, becomes: str
) -> None:
    """There is nobody left to link to: a page says so, and nothing is stored."""
    client.force_login(make_user(), backend="django.contrib.auth.backends.ModelBackend")

    def go() -> None:
        if becomes == "deleted":
            User.objects.all().delete()
        User.objects.update(is_active=False)

    service.meanwhile["claims"] = go
    refused(sign_in(client), "user_inactive", caplog)
    assert not LinkedIdentity.objects.exists()


def test_a_subject_of_another_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A linked subject stays where it is."""
    owner = make_user("owner")
    make_identity(owner)
    client.force_login(make_user("eve"), backend="django.contrib.auth.backends.ModelBackend")
    refused(sign_in(client), "subject_taken", caplog)
    assert LinkedIdentity.objects.get().user == owner


def test_a_renewal_as_somebody_else(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A renewal comes back as the same subject."""
    user = make_user()
    make_identity(user, subject="another-subject")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    refused(sign_in(client), "subject_changed", caplog)


def test_a_second_subject_for_one_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever was linked in another tab meanwhile keeps that subject."""
    user = make_user()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    state = begin(client)
    make_identity(user, subject="another-subject")
    refused(come_back(client, state), "user_holds_another", caplog)
    assert LinkedIdentity.objects.get().subject == "another-subject"


@pytest.mark.parametrize("email", ["ada@example.org", "ADA@Example.ORG"])
def test_a_taken_address(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, email: str
) -> None:
    """Accounts are never merged silently; after the local sign-in the linking goes on."""
    user = make_user(email=email)
    response = sign_in(client, "/adults/")
    refused(response, "email_taken", caplog)
    assert not LinkedIdentity.objects.exists()
    other_way = response.context["local_sign_in_url"]
    assert f'href="{other_way}"' in response.content.decode()
    signed_in = client.post(other_way, {"username": "ada", "password": "a password"})
    button = client.get(signed_in["Location"])
    assert (button.context["purpose"], button.context["next"]) == ("link", "/adults/")
    assert sign_in(client, button.context["next"])["Location"] == "/adults/"
    assert LinkedIdentity.objects.get().user == user


@pytest.mark.parametrize("email", ["ada@example.org", ""])
def test_two_browsers_sign_one_new_subject_up(service: HostileService, email: str) -> None:
    """One of them makes the account, and both end up in it, though both have found none."""
    service.profile = {"email": email}
    both_found_none = threading.Barrier(2)
    browsers = [Client(), Client()]
    states = [begin(browser) for browser in browsers]

    def arrive(browser: Client, state: str) -> HttpResponse:
        # The first UPDATE claims the sign-in, the second one begins to link.
        with meeting_at_update(both_found_none, 2):
            return come_back(browser, state)

    callers = [partial(arrive, *pair) for pair in zip(browsers, states, strict=True)]
    assert [response.status_code for response in at_once(callers)] == [302, 302]
    user = User.objects.get()
    assert LinkedIdentity.objects.get().user == user
    assert {browser.get("/").content.decode() for browser in browsers} == {user.username}


def test_a_site_that_takes_no_newcomers(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Proven or not, nobody gets an account; whoever has one comes in."""
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.may_sign_up", lambda self, *, profile, kyc: False
    )
    refused(sign_in(client), "sign_up_refused", caplog)
    assert nobody_was_made()
    make_identity(make_user())
    assert sign_in(client).status_code == 302


@pytest.mark.parametrize("email", ["ada@example.org\nBcc: x@y.z", " ada@example.org", "no-address"])
def test_an_address_that_the_user_model_does_not_take(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, email: str
) -> None:
    """The account is made without it."""
    service.profile = {"email": email}
    assert sign_in(client).status_code == 302
    assert User.objects.get().email == ""
    assert email not in caplog.text


@pytest.mark.parametrize("field", ["is_staff", "is_superuser", "is_active", "password", "pk", "id"])
def test_fields_that_no_policy_may_write(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A policy that reaches for power is refused as a whole."""
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.new_user_fields",
        lambda self, *, profile, kyc: {"username": "x", field: 1},
    )
    refused(sign_in(client), "configuration", caplog)
    assert nobody_was_made()


@pytest.mark.parametrize("field", ["is_staff", "is_superuser", "is_active", "password", "pk", "id"])
def test_fields_that_no_policy_may_overwrite(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Nor of somebody who comes again."""
    user = make_user()
    make_identity(user)
    before = User.objects.values().get()
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.changed_user_fields",
        lambda self, user, *, profile, kyc: {"first_name": "x", field: 1},
    )
    refused(sign_in(client), "configuration", caplog)
    assert User.objects.values().get() == before


def test_every_error_has_a_code_of_its_own() -> None:
    """One root, and a stable code for each leaf."""

    def tree(kind: type[IdentityError]) -> list[type[IdentityError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in tree(child))]

    codes = [kind.code for kind in tree(IdentityError)]
    assert len(codes) == len(set(codes))
