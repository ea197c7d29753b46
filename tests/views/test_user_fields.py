"""What of a person's profile gets into their account, by the policy and as far as it is valid."""

from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.core.exceptions import ValidationError
from django.test import Client, override_settings

from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in
from tests.views.bad_input.refusals import refused

pytestmark = pytest.mark.django_db(transaction=True)


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


class BadlyNamed(IdentityPolicy):
    def new_user_fields(self, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {"email": profile.email, "username": "no spaces, Ada"}


class Addressed(IdentityPolicy):
    """The address of the account is its name, as where it is the user model's."""

    def new_user_fields(self, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        return {"email": profile.email, "username": "taken"}


class Careful(IdentityPolicy):
    """Takes nobody with a high risk."""

    def may_sign_up(self, *, profile: Profile, kyc: Any) -> bool:
        return profile.risk_score is None or profile.risk_score < 50


def by(policy: type[IdentityPolicy], given: dict[str, Any]) -> override_settings:
    chosen = {**given, "POLICY": f"{__name__}.{policy.__name__}"}
    return override_settings(DJANGO_IDENTITY={"default": chosen})


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


@pytest.mark.parametrize("why", [BadlyNamed, Addressed, no_adas])
def test_what_cannot_be_left_out_refuses(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch, why: Any,
) -> None:  # fmt: skip
    """A bad name, a unique one that is taken, a rule of the whole model (``full_clean`` runs).

    The operator reads which field it was, and nobody what was in it.
    """
    make_user("taken", email="taken@example.org")
    given = service.settings()
    if why is no_adas:
        monkeypatch.setattr(User, "clean", no_adas)
        why = IdentityPolicy
    else:
        given["POLICY"] = f"{__name__}.{why.__name__}"
    with override_settings(DJANGO_IDENTITY={"default": given}):
        response = sign_in(client)
    assert (response.status_code, "user_fields_refused" in response.text) == (403, True)
    assert "cannot create an account" in response.text
    assert ("username" in caplog.text) is (why is not IdentityPolicy)
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


def comes_back(service: FakeService, policy: type[IdentityPolicy], **profile: str) -> User:
    """Somebody signs up, and returns with another profile."""
    with by(policy, service.settings()):
        assert sign_in(Client()).status_code == 302
        service.profile = profile
        assert sign_in(Client()).status_code == 302
    return User.objects.latest("pk")


def test_what_is_valid_is_taken_over(service: FakeService) -> None:
    """An address that nobody else has, and names."""
    names = {"first_name": "Adaeze", "last_name": "Obi-Eze"}
    user = comes_back(service, Follows, email="ada@new.example", **names)
    assert (user.email, user.first_name, user.last_name) == ("ada@new.example", "Adaeze", "Obi-Eze")


@pytest.mark.parametrize(
    ("field", "value"),
    [("email", "other@example.org"), ("email", "OTHER@example.org"), ("email", "no address"),
     ("email", "a@b.example\nBcc: all@b.example"), ("first_name", "A" * 900),
     ("last_name", "O" * 151)],
)  # fmt: skip
def test_what_is_taken_or_invalid_stays_as_it_was(
    service: FakeService, caplog: pytest.LogCaptureFixture, field: str, value: str
) -> None:
    """No two accounts get one address. The person is signed in all the same."""
    make_user("first", email="other@example.org")
    before = {"email": "ada@example.org", "first_name": "Ada", "last_name": "Obi"}
    user = comes_back(service, Follows, **{**before, field: value})
    assert {name: getattr(user, name) for name in before} == before
    assert f"identity.user_fields.refused application=default fields={field}" in caplog.text
    assert value[:20] not in caplog.text


def test_a_name_that_another_account_has(service: FakeService) -> None:
    """A unique column refuses, and is asked before the database is."""
    make_user("Adaeze")
    user = comes_back(service, Renames, first_name="Adaeze")
    assert user.username.startswith("identity-")
    assert user.last_name == "Obi"


# What the policy says and hears


@pytest.mark.parametrize(
    ("policy", "method"), [(Forgot, "changed_user_fields"), (ForgotNew, "new_user_fields")]
)
def test_a_method_that_returns_nothing_is_named(
    service: FakeService, caplog: pytest.LogCaptureFixture, policy: type[IdentityPolicy],
    method: str,
) -> None:  # fmt: skip
    """Whoever forgot a ``return`` reads where."""
    if policy is Forgot:
        sign_in(Client())
    with by(policy, service.settings()):
        assert sign_in(Client()).status_code == 500
    assert f"{method} returned None" in caplog.text


@pytest.mark.parametrize(
    ("score", "is_refused"),
    [(49, False), (50, True), (None, False), (-1, False), ("12", False), (1.5, False),
     (50.5, True), ("99", True), (True, False), ([1], False)],
)  # fmt: skip
def test_a_risk_score_is_a_number(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    score: Any, is_refused: bool,
) -> None:  # fmt: skip
    """Or a text that is one; a high score is never taken for none."""
    service.profile = {"risk_score": score}
    with by(Careful, service.settings()):
        response = sign_in(client)
    if is_refused:
        refused(response, "sign_up_refused", caplog)
    else:
        assert response.status_code == 302
