"""``changed_user_fields``: what the site takes over from a returning person, if it is valid."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "tests.views.test_changed_fields"


class Follows(IdentityPolicy):
    """The account follows the identity."""

    def changed_user_fields(self, user: Any, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {
            "email": profile.email, "first_name": profile.first_name, "last_name": profile.last_name
        }  # fmt: skip


class Renames(IdentityPolicy):
    def changed_user_fields(self, user: Any, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {"username": profile.first_name, "last_name": "Changed"}


class Forgot(IdentityPolicy):
    def changed_user_fields(self, user: Any, *, profile: Profile, kyc: Any) -> Any:
        return None


class ForgotNew(IdentityPolicy):
    def new_user_fields(self, *, profile: Profile, kyc: Any) -> Any:
        return None


def comes_back(service: FakeService, policy: str = "Follows", **profile: str) -> User:
    """Somebody signs up, and returns with another profile."""
    settings = service.settings(POLICY=f"{HERE}.{policy}")
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        assert sign_in(Client()).status_code == 302
        service.profile = profile
        assert sign_in(Client()).status_code == 302
    return User.objects.latest("pk")


def test_what_is_valid_is_taken_over(service: FakeService) -> None:
    """An address that nobody else has, and names."""
    user = comes_back(service, email="ada@new.example", first_name="Adaeze", last_name="Obi-Eze")
    assert (user.email, user.first_name, user.last_name) == ("ada@new.example", "Adaeze", "Obi-Eze")


@pytest.mark.parametrize("taken", ["other@example.org", "OTHER@example.org"])
def test_no_two_accounts_get_one_address(
    service: FakeService, caplog: pytest.LogCaptureFixture, taken: str
) -> None:
    """The old one stays, and so does everything else."""
    make_user("first", email="other@example.org")
    user = comes_back(service, email=taken, first_name="Adaeze")
    assert (user.email, user.first_name) == ("ada@example.org", "Ada")
    assert "identity.user_fields.refused application=default fields=email" in caplog.text
    assert "example.org" not in caplog.text


@pytest.mark.parametrize(
    ("field", "value"),
    [("email", "a@b.example\nBcc: all@b.example"), ("email", "no address"),
     ("first_name", "A" * 900), ("last_name", "O" * 151)],
)  # fmt: skip
def test_what_the_user_model_refuses_stays_as_it_was(
    service: FakeService, caplog: pytest.LogCaptureFixture, field: str, value: str
) -> None:
    """As it does for a new user; the person is signed in all the same."""
    before = {"email": "ada@example.org", "first_name": "Ada", "last_name": "Obi"}
    user = comes_back(service, **{**before, field: value})
    assert {name: getattr(user, name) for name in before} == before
    assert f"fields={field}" in caplog.text
    assert value[:20] not in caplog.text


def test_a_name_that_another_account_has(service: FakeService) -> None:
    """A unique column refuses, and is asked before the database is."""
    make_user("Adaeze")
    user = comes_back(service, "Renames", first_name="Adaeze")
    assert user.username.startswith("identity-")
    assert user.last_name == "Obi"


@pytest.mark.parametrize(
    ("policy", "method"),
    [("Forgot", "changed_user_fields"), ("ForgotNew", "new_user_fields")],
)
def test_a_method_that_returns_nothing_is_named(
    service: FakeService, caplog: pytest.LogCaptureFixture, policy: str, method: str
) -> None:
    """Whoever forgot a ``return`` reads where."""
    settings = service.settings(POLICY=f"{HERE}.{policy}")
    sign_in(Client()) if policy == "Forgot" else None
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        assert sign_in(Client()).status_code == 500
    assert f"{method} returned None" in caplog.text


@pytest.mark.parametrize(
    ("given", "stored"),
    [("Ada\u202egnihsihp", "Adagnihsihp"), ("A\x07d\x00a\n Obi", None), ("\u2066Ada\u2069", "Ada"),
     ("Ada\r\nBcc: x", "Ada Bcc: x"), ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e")],
)  # fmt: skip
def test_names_hide_nothing(service: FakeService, given: str, stored: str | None) -> None:
    """Control characters and those that turn the direction of text go; what writing needs stays."""
    service.profile = {"first_name": given}
    response = sign_in(Client())
    if stored is None:
        assert response.status_code == 502, "NUL is no text at all"
    else:
        assert User.objects.get().first_name == stored
