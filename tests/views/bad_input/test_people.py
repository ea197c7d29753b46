"""Who may be signed in as whom, and where they go next."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.models import LinkedIdentity
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in
from tests.views.bad_input.refusals import nobody_was_made
from tests.views.connect.pages import LOCAL

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
def test_next_stays_on_this_site(client: Client, service: FakeService, given: str) -> None:
    """Only a path of this site is a place to go to; a link to our own page carries no other."""
    page = client.get(reverse("identity:login"), {"next": given})
    assert page.context["next"] == ""
    assert not any(part in page.content.decode() for part in ("evil", "data:x", "aaaa", "alert"))
    assert sign_in(client, given)["Location"] == "/"
    # Where to go was settled when the button was pressed.
    assert come_back(client, begin(client, "/a/"), next=given)["Location"] == "/a/"


def test_a_forged_host(client: Client, service: FakeService) -> None:
    """The callback address follows no host that is not ours."""
    assert client.post(reverse("identity:login"), HTTP_HOST="evil.example").status_code == 400
    fixed = service.settings(REDIRECT_URI="https://site.example/identity/callback/")
    with override_settings(ALLOWED_HOSTS=["*"], DJANGO_IDENTITY={"default": fixed}):
        response = client.post(reverse("identity:login"), HTTP_HOST="evil.example")
    assert "evil" not in response["Location"]


@pytest.mark.parametrize("becomes", ["deleted", "disabled"])
def test_a_user_who_is_gone_when_the_service_has_answered(
    client: Client, service: FakeService, refused: Any, becomes: str
) -> None:
    """There is nobody left to link to: a page says so, and nothing is stored."""
    client.force_login(make_user(), backend=LOCAL)

    def go() -> None:
        if becomes == "deleted":
            User.objects.all().delete()
        User.objects.update(is_active=False)

    service.meanwhile["claims"] = go
    refused(sign_in(client), "user_inactive")
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("email", ["ada@example.org", "ADA@Example.ORG"])
def test_a_taken_address(client: Client, service: FakeService, refused: Any, email: str) -> None:
    """Accounts are never merged silently; after the local sign-in the linking goes on."""
    user = make_user(email=email)
    response = sign_in(client, "/adults/")
    refused(response, "email_taken")
    assert not LinkedIdentity.objects.exists()
    other_way = response.context["local_sign_in_url"]
    assert f'href="{other_way}"' in response.content.decode()
    signed_in = client.post(other_way, {"username": "ada", "password": "a password"})
    button = client.get(signed_in["Location"])
    assert (button.context["purpose"], button.context["next"]) == ("link", "/adults/")
    assert sign_in(client, button.context["next"])["Location"] == "/adults/"
    assert LinkedIdentity.objects.get().user == user


def test_a_site_that_takes_no_newcomers(
    client: Client, service: FakeService, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proven or not, nobody gets an account; whoever has one comes in."""
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.may_sign_up", lambda self, **_about: False
    )
    refused(sign_in(client), "sign_up_refused")
    assert nobody_was_made()
    make_identity(make_user())
    assert sign_in(client).status_code == 302


@pytest.mark.parametrize("field", ["is_staff", "is_superuser", "is_active", "password", "pk", "id"])
def test_fields_that_no_policy_may_overwrite(
    client: Client, service: FakeService, refused: Any, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor of somebody who comes again."""
    user = make_user()
    make_identity(user)
    before = User.objects.values().get()
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.changed_user_fields",
        lambda self, user, **_about: {"first_name": "x", field: 1},
    )
    refused(sign_in(client), "configuration")
    assert User.objects.values().get() == before


def test_an_account_that_is_made_inactive_is_refused(client: Client, service: FakeService) -> None:
    """A site whose accounts wait for approval: nobody is signed in, and no account is left."""

    def wait_for_approval(instance: User, **_kwargs: Any) -> None:
        instance.is_active = False

    pre_save.connect(wait_for_approval, sender=User)
    try:
        assert sign_in(client).status_code == 403
    finally:
        pre_save.disconnect(wait_for_approval, sender=User)
    assert nobody_was_made()
