"""New accounts: what the user model refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.core.exceptions import ValidationError
from django.test import Client, override_settings

from django_identity.policy import IdentityPolicy
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_name_is_left_out(client: Client, service: FakeService) -> None:
    service.profile = {"first_name": "A" * 200, "last_name": "B" * 149}
    assert sign_in(client).status_code == 302
    user = User.objects.get()
    assert (user.first_name, user.last_name) == ("", "B" * 149)


class BadlyNamed(IdentityPolicy):
    def new_user_fields(self, *, profile: Any, kyc: Any) -> Mapping[str, Any]:
        return {**super().new_user_fields(profile=profile, kyc=kyc), "username": "no spaces, Ada"}


def test_what_remains_refused_names_the_field(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """To the operator, and without what was in it."""
    given = service.settings(POLICY=f"{__name__}.BadlyNamed")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        response = sign_in(client)
    assert (response.status_code, "user_fields_refused" in response.text) == (403, True)
    assert "username" in caplog.text
    assert "no spaces" not in caplog.text + response.text
    assert not User.objects.exists()


def no_adas(user: User) -> None:
    if user.first_name == "Ada":
        raise ValidationError("no Adas, whatever else is said of them")


def test_a_rule_of_the_whole_model_refuses_in_words(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``full_clean`` runs, and a rule about no single field in it."""
    monkeypatch.setattr(User, "clean", no_adas)
    service.profile = {"first_name": "Ada"}
    response = sign_in(client)
    assert (response.status_code, "user_fields_refused" in response.text) == (403, True)
    assert "cannot create an account" in response.text
    assert not User.objects.exists()
    service.profile = {"first_name": "Grace"}
    assert sign_in(Client()).status_code == 302


class Addressed(IdentityPolicy):
    """The address of the account is its name, as where it is the user model's."""

    def new_user_fields(self, *, profile: Any, kyc: Any) -> Mapping[str, Any]:
        return {"username": "taken", "email": profile.email}


def test_a_unique_value_is_not_left_out(client: Client, service: FakeService) -> None:
    make_user("taken")
    given = service.settings(POLICY=f"{__name__}.Addressed")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        assert "user_fields_refused" in sign_in(client).text


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
