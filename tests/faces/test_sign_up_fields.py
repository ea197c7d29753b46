"""New accounts: what the user model refuses, and two of them at the same moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.core.exceptions import ValidationError
from django.test import Client, override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import EmailTaken
from django_identity.lifecycle.arrival import linking
from django_identity.lifecycle.arrival.service_data import ServiceData
from django_identity.models import (
    ConnectRedemption,
    LinkedIdentity,
    Purpose,
    SignUpTurn,
)
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.at_once import at_once
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.records import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_name_is_cut(client: Client, service: HostileService) -> None:
    service.profile = {"first_name": "A" * 200, "last_name": "B" * 149 + " C"}
    assert sign_in(client).status_code == 302
    user = User.objects.get()
    assert (user.first_name, user.last_name) == ("A" * 150, "B" * 149)


@pytest.mark.parametrize("email", ["ada@localhost..", "a" * 250 + "@example.org"])
def test_an_odd_address_is_left_out(client: Client, service: HostileService, email: str) -> None:
    """The account is of use without it."""
    service.profile = {"email": email}
    assert sign_in(client).status_code == 302
    assert User.objects.get().email == ""


class BadlyNamed(IdentityPolicy):
    def new_user_fields(self, *, profile: Any, kyc: Any) -> Mapping[str, Any]:
        return {**super().new_user_fields(profile=profile, kyc=kyc), "username": "no spaces, Ada"}


def test_what_remains_refused_names_the_field(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
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
    client: Client, service: HostileService, monkeypatch: pytest.MonkeyPatch
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


def test_a_unique_value_is_not_left_out(client: Client, service: HostileService) -> None:
    make_user("taken")
    given = service.settings(POLICY=f"{__name__}.Addressed")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        assert "user_fields_refused" in sign_in(client).text


def sign_up(subject: str, email: str) -> str:
    """What the second half of a callback does with two people's data."""
    data = ServiceData(
        subject=subject, scopes=("profile:read",), profile=Profile(subject, email), kyc=None
    )
    redemption = ConnectRedemption.objects.create(
        code_digest=subject, application="default", environment="test",
        expires_at=timezone.now(),
    )  # fmt: skip
    request = linking.LinkRequest(
        application=conf.application(),
        purpose=Purpose.SIGN_IN,
        user_id=None,
        began_at=redemption.created_at,
        complete=lambda completed_by: ConnectRedemption.objects.filter(pk=redemption.pk).update(
            completed_by=completed_by
        ),
    )
    try:
        linking.link(request, data, user=None)
    except EmailTaken as taken:
        return taken.code
    return "created"


def test_the_sites_manager_makes_the_account(
    client: Client, service: HostileService, monkeypatch: pytest.MonkeyPatch
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


def test_a_manager_without_create_user(
    client: Client, service: HostileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is saved, and can come back without a password."""
    monkeypatch.delattr(UserManager, "create_user")
    assert sign_in(client).status_code == 302
    assert User.objects.get().email == "ada@example.org"
    assert not User.objects.get().has_usable_password()
    assert sign_in(Client()).status_code == 302
    assert User.objects.count() == 1


@pytest.mark.parametrize("number", range(5))
def test_two_new_accounts_for_one_address(number: int) -> None:
    """One is made; the other person waits for it, and is told. The user model allows both."""
    callers = [
        lambda: sign_up("subject-1", "Ada@example.org"),
        lambda: sign_up("subject-2", "ada@Example.org"),
    ]
    assert sorted(at_once(callers)) == ["created", "email_held_by_identity"]
    assert User.objects.count() == LinkedIdentity.objects.count() == 1
    assert not SignUpTurn.objects.exists()


def test_two_addresses_do_not_meet() -> None:
    callers = [
        lambda: sign_up("subject-1", "ada@example.org"),
        lambda: sign_up("subject-2", "grace@example.org"),
    ]
    assert at_once(callers) == ["created", "created"]
