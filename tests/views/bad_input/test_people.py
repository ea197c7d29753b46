"""Who may be signed in as whom, and where they go next."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.db import connection
from django.db.models import QuerySet
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse

from django_identity.models import LinkedIdentity, StoredClaim
from django_identity.policy import IdentityPolicy
from tests.factories import make_identity, make_user
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import LOCAL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "https://evil.example/",
        "http:///evil.example",
        "javascript:alert(1)",
        "/\tevil",
        "/\n/evil.example",
        "\t//evil.example",
        "/\r\nX: y",
        "%2F%2Fevil.example",
        "//testserver@evil.example",
        "///evil.example",
        "/" + "a" * 8192,
        "/" + "a" * 2000,
        " //evil.example",
        "data:x",
    ],
)
def test_next_stays_on_this_site(client, service, given):
    page = client.get(reverse("identity:login"), {"next": given})
    assert page.context["next"] == ""
    assert not re.search("evil|data:x|aaaa|alert", page.content.decode())
    assert sign_in(client, given)["Location"] == "/"
    # Where to go was settled when the button was pressed.
    assert come_back(client, begin(client, "/a/"), next=given)["Location"] == "/a/"


def test_a_forged_host_does_not_change_the_callback_address(client, service, settings):
    address = reverse("identity:login")
    assert client.post(address, HTTP_HOST="evil.example").status_code == 400
    settings.ALLOWED_HOSTS = ["*"]
    own = "https://site.example/identity/callback/"
    settings.DJANGO_IDENTITY = service.settings(REDIRECT_URI=own)
    assert "evil" not in client.post(address, HTTP_HOST="evil.example")["Location"]


@pytest.mark.parametrize("becomes", ["deleted", "disabled"])
def test_a_user_who_is_gone_by_the_time_of_the_answer_is_not_linked(
    client,
    service,
    refused,
    becomes,
):
    client.force_login(make_user(), backend=LOCAL)

    def go() -> None:
        if becomes == "deleted":
            User.objects.all().delete()
        User.objects.update(is_active=False)

    service.meanwhile["claims"] = go
    refused(sign_in(client), "user_inactive")
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("email", ["ada@example.org", "ADA@Example.ORG"])
def test_an_account_with_the_same_address_is_never_merged_silently(
    client,
    service,
    refused,
    email,
):
    user = make_user(email=email)
    response = sign_in(client, "/adults/")
    refused(response, "email_taken")
    assert not LinkedIdentity.objects.exists()
    other_way = response.context["local_sign_in_url"]
    assert f'href="{other_way}"' in response.content.decode()
    signed_in = client.post(other_way, {"username": "ada", "password": "a password"})
    button = client.get(signed_in["Location"])
    assert button.context["purpose"] == "link"
    assert button.context["next"] == "/adults/"
    assert sign_in(client, button.context["next"])["Location"] == "/adults/"
    assert LinkedIdentity.objects.get().user == user


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("is_staff", True),
        ("is_superuser", True),
        ("is_active", False),
        ("password", "1"),
        ("id", 1000),
    ],
)
@pytest.mark.parametrize("way", ["by the user", "by a query"])
def test_a_policy_may_not_overwrite_protected_fields(
    client,
    service,
    refused,
    field,
    value,
    way,
    monkeypatch,
):
    if (way, field, connection.vendor) == ("by a query", "id", "mysql"):
        pytest.skip("the database itself refuses to change a key that is pointed at")
    user = make_user()
    make_identity(user)
    before = User.objects.values().get()

    def update_user(_policy: IdentityPolicy, user: User, **_about: Any) -> None:
        if way == "by a query":
            User.objects.update(first_name="x", **{field: value})
        else:
            user.username = "another"
            setattr(user, field, value)
            user.save()

    monkeypatch.setattr(IdentityPolicy, "update_user", update_user)
    refused(sign_in(client), "configuration")
    assert User.objects.values().get() == before


def make_inactive(instance: User, **_about: Any) -> None:
    if instance.pk is None:
        instance.is_active = False


def create_inactive(self: UserManager[User], username: str, **fields: Any) -> User:
    return self._create_user(username, is_active=False, **fields)  # type: ignore[attr-defined]


def only_active(self: UserManager[User]) -> QuerySet[User]:
    return QuerySet(self.model, using=self._db).filter(is_active=True)


@pytest.fixture(params=["by a receiver", "by the manager", "and hidden"])
def approving(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """New accounts wait until staff activate them."""
    if request.param == "by the manager":
        monkeypatch.setattr(UserManager, "create_user", create_inactive)
    else:
        pre_save.connect(make_inactive, sender=User)
    if request.param == "and hidden":
        monkeypatch.setattr(UserManager, "get_queryset", only_active)
    yield
    pre_save.disconnect(make_inactive, sender=User)


def everybody() -> QuerySet[User]:
    return User._base_manager.all()


@pytest.mark.usefixtures("approving")
def test_an_account_that_waits_for_approval_gets_no_session(
    client,
    service,
    refused,
    monkeypatch,
):
    """It stays, with all that came; only the session is refused, until staff have approved it."""
    with monkeypatch.context() as patch:
        patch.setattr(IdentityPolicy, "may_sign_up", lambda self, **_about: False)
        refused(sign_in(client), "sign_up_refused")
    assert not everybody().exists()

    may_sign_in = lambda self, user, **_about: user.is_active  # noqa: E731
    monkeypatch.setattr(IdentityPolicy, "may_sign_in", may_sign_in)
    for _ in range(2):
        response = sign_in(client)
        assert "have to approve your account" in response.content.decode()
        refused(response, "approval_pending", made=1)
        assert not is_signed_in(client)
    identity = LinkedIdentity.objects.get()
    assert identity.consent == "granted"
    assert identity.made_its_account is True
    assert StoredClaim.objects.filter(valid_until__isnull=False).exists()

    everybody().update(is_active=True)
    assert sign_in(client).status_code == 302
    assert is_signed_in(client)
    assert everybody().count() == 1

    everybody().update(is_active=False)
    refused(sign_in(Client()), "user_inactive", made=1)


def test_a_disabled_account_is_refused_and_does_not_wait(client, service, refused):
    user = make_user(is_active=False)
    identity = make_identity(user, account_made=False)
    refused(sign_in(client), "user_inactive")
    LinkedIdentity.objects.update(made_account=str(user.pk))
    User.objects.update(last_login=identity.created_at)
    refused(sign_in(client), "user_inactive")
