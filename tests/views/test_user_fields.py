"""What of a person's profile gets into their account, by the policy and as far as it is valid."""

from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.core.exceptions import ValidationError
from django.test import Client

from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in
from tests.views.conftest import Says

pytestmark = pytest.mark.django_db(transaction=True)

# A new account


@pytest.mark.parametrize(
    ("profile", "stored"),
    [
        ({"first_name": "A" * 200, "last_name": "B" * 149}, ("", "B" * 149)),
        # Control characters and those that turn the direction of text go; what writing needs stays.
        ({"first_name": "Ada\u202egnihsihp"}, ("Adagnihsihp", "Obi")),
        ({"first_name": "A\x07da\r\nBcc: x"}, ("A da Bcc: x", "Obi")),
        ({"first_name": "\u0645\u06cc\u200c\u062e"}, ("\u0645\u06cc\u200c\u062e", "Obi")),
        ({"email": "ada@example.org\nBcc: x@y.z"}, ("Ada", "Obi")),
        ({"email": " ada@example.org"}, ("Ada", "Obi")),
        ({"email": "no-address"}, ("Ada", "Obi")),
    ],
)
def test_a_new_account_has_what_is_valid(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    profile: dict[str, str], stored: tuple[str, str],
) -> None:  # fmt: skip
    """What the user model refuses is left out, and the person is in."""
    service.profile = profile
    assert sign_in(client).status_code == 302
    user = User.objects.get()
    assert (user.first_name, user.last_name) == stored
    assert user.email == ("" if "email" in profile else "ada@example.org")
    assert profile.get("email", "@") == "@" or profile["email"] not in caplog.text


def no_adas(user: User) -> None:
    if user.first_name == "Ada":
        raise ValidationError("no Adas, whatever else is said of them")


@pytest.mark.parametrize("username", ["no spaces, Ada", "taken", ""])
def test_what_cannot_be_left_out_refuses(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch, says: Says, username: str,
) -> None:  # fmt: skip
    """A bad name, a unique one that is taken, a rule of the whole model (``full_clean`` runs).

    The operator reads which field it was, and nobody what was in it.
    """
    make_user("taken", email="taken@example.org")
    if username:
        says("new_user_fields", lambda profile: {"email": profile.email, "username": username})
    else:
        monkeypatch.setattr(User, "clean", no_adas)
    response = sign_in(client)
    assert (response.status_code, "user_fields_refused" in response.text) == (403, True)
    assert "cannot create an account" in response.text
    assert ("username" in caplog.text) is bool(username)
    assert "no spaces" not in caplog.text + response.text
    assert User.objects.count() == 1


def test_the_sites_manager_makes_the_account(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the site's own sign-up does; a password that it sets is not kept."""
    made: list[str] = []
    create_user = UserManager.create_user

    def create(self: Any, username: str, email: str = "", password: Any = None, **more: Any) -> Any:
        made.append(email)
        return create_user(self, username, email, "set by the site", **more)

    monkeypatch.setattr(UserManager, "create_user", create)
    assert sign_in(client).status_code == 302
    assert made == ["ada@example.org"]
    assert not User.objects.get().has_usable_password()


# Who returns


def comes_back(service: FakeService, **profile: str) -> User:
    """Somebody signs up, and returns with another profile."""
    assert sign_in(Client()).status_code == 302
    service.profile = profile
    assert sign_in(Client()).status_code == 302
    return User.objects.latest("pk")


BEFORE = {"email": "ada@example.org", "first_name": "Ada", "last_name": "Obi"}


@pytest.mark.parametrize(
    ("profile", "refused_field"),
    [({"email": "ada@new.example", "first_name": "Adaeze", "last_name": "Obi-Eze"}, ""),
     ({"email": "other@example.org"}, "email"), ({"email": "OTHER@example.org"}, "email"),
     ({"email": "no address"}, "email"), ({"email": "a@b.example\nBcc: all@b.example"}, "email"),
     ({"first_name": "A" * 900}, "first_name"), ({"last_name": "O" * 151}, "last_name")],
)  # fmt: skip
def test_the_account_follows_the_identity(
    service: FakeService, caplog: pytest.LogCaptureFixture, says: Says, profile: dict[str, str],
    refused_field: str,
) -> None:  # fmt: skip
    """What is taken or invalid stays as it was: no two accounts get one address.

    The person is signed in all the same.
    """
    says("changed_user_fields", lambda profile: {name: getattr(profile, name) for name in BEFORE})
    make_user("first", email="other@example.org")
    user = comes_back(service, **{**BEFORE, **profile})
    expected = BEFORE if refused_field else profile
    assert {name: getattr(user, name) for name in BEFORE} == expected
    if refused_field:
        line = f"identity.user_fields.refused application=default fields={refused_field}"
        assert line in caplog.text
        assert profile[refused_field][:20] not in caplog.text


def test_a_name_that_another_account_has(service: FakeService, says: Says) -> None:
    """A unique column refuses, and is asked before the database is."""
    make_user("Adaeze")
    says("changed_user_fields", lambda profile: {"username": "Adaeze", "last_name": "Changed"})
    user = comes_back(service, first_name="Adaeze")
    assert user.username.startswith("identity-")
    assert user.last_name == "Obi"


# What the policy says and hears


@pytest.mark.parametrize("method", ["changed_user_fields", "new_user_fields"])
def test_a_method_that_returns_nothing_is_named(
    service: FakeService, caplog: pytest.LogCaptureFixture, says: Says, method: str
) -> None:
    """Whoever forgot a ``return`` reads where."""
    if method == "changed_user_fields":
        sign_in(Client())
    says(method, lambda profile: None)
    assert sign_in(Client()).status_code == 500
    assert f"{method} returned None" in caplog.text


@pytest.mark.parametrize(
    ("score", "is_refused"),
    [(49, False), (50, True), (None, False), (-1, False), ("12", False), (1.5, False),
     (50.5, True), ("99", True), (True, False), ([1], False)],
)  # fmt: skip
def test_a_risk_score_is_a_number(
    client: Client, service: FakeService, refused: Any, says: Says, score: Any, is_refused: bool
) -> None:
    """Or a text that is one; a high score is never taken for none."""
    service.profile = {"risk_score": score}
    says("may_sign_up", lambda profile: profile.risk_score is None or profile.risk_score < 50)
    response = sign_in(client)
    if is_refused:
        refused(response, "sign_up_refused")
    else:
        assert response.status_code == 302
