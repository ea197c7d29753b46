"""What of a person's profile gets into their account, by the policy and as far as it is valid."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User, UserManager
from django.core.checks import run_checks
from django.core.exceptions import ValidationError
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    models,
)
from django.db.migrations.state import ProjectState
from django.db.models.functions import Lower
from django.db.models.signals import post_save
from django.db.transaction import set_rollback
from django.test import Client

from django_identity.lifecycle.leaving import dossier, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.factories import make_user
from tests.sign_in import is_signed_in, sign_in

pytestmark = pytest.mark.django_db(transaction=True)

NAIL = "\u0645\u06cc\u200c\u062e"


@pytest.mark.parametrize(
    ("profile", "stored"),
    [
        ({"first_name": "A" * 200, "last_name": "B" * 149}, ("", "B" * 149)),
        # Control characters and those that turn the direction of text go; what writing needs stays.
        ({"first_name": "Ada\u202egnihsihp"}, ("Adagnihsihp", "Obi")),
        ({"first_name": "A\x07da\r\nBcc: x"}, ("A da Bcc: x", "Obi")),
        ({"first_name": NAIL}, (NAIL, "Obi")),
        ({"email": "no-address"}, ("Ada", "Obi")),
    ],
)
def test_a_new_account_has_what_is_valid(client, service, caplog, profile, stored):
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
    client,
    service,
    caplog,
    monkeypatch,
    says,
    username,
):
    """A bad name, a unique one that is taken, a rule of the whole model (``full_clean`` runs)."""
    make_user("taken", email="taken@example.org")
    if username:
        fields = {"username": username}
        says("new_user_fields", lambda profile: {"email": profile.email, **fields})
    else:
        monkeypatch.setattr(User, "clean", no_adas)
    response = sign_in(client)
    assert response.status_code == 403
    assert "user_fields_refused" in response.text
    assert "cannot create an account" in response.text
    assert ("username" in caplog.text) is bool(username)
    assert "no spaces" not in caplog.text + response.text
    assert User.objects.count() == 1


def demanding(
    self: Any,
    username: str,
    first_name: str,
    last_name: str,
    email: str,
    password: Any = None,
) -> User:
    """As some sites have it: each name is a parameter without a default."""
    names = {"first_name": first_name, "last_name": last_name}
    user = User.objects.create(username=username, email=email, **names)
    user.set_password("set by the site")
    return user


def test_the_sites_manager_makes_the_account(client, service, monkeypatch):
    """What the person lacks is an empty text, and a password that the site sets is not kept."""
    monkeypatch.setattr(UserManager, "create_user", demanding)
    service.profile = {"last_name": "", "email": ""}

    assert sign_in(client).status_code == 302

    user = User.objects.get()
    assert user.first_name == "Ada"
    assert user.last_name == ""
    assert user.email == ""
    assert not user.has_usable_password()


@pytest.fixture
def with_field(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """The user model has one more field, which is the parameter. Returns the field's name."""
    # As migrations see the model: without its bases, which have tables of their own.
    migrated: Any = ProjectState.from_apps(apps).apps.get_model("auth", "User")
    name = "extra"
    for model in (migrated, User):
        request.param.clone().contribute_to_class(model, name)
    column = migrated._meta.get_field(name)
    with connection.schema_editor() as editor:
        editor.add_field(migrated, column)
    yield name
    User.objects.all().delete()
    User._meta.local_fields.remove(User._meta.get_field(name))
    User._meta._expire_cache()
    delattr(User, name)
    with connection.schema_editor() as editor:
        editor.remove_field(migrated, column)


#: Fields that a person does not fill: the model does, or the database.
OF_THE_MODEL = {
    "an empty dict": models.JSONField(default=dict),
    "an empty text": models.CharField(max_length=9, default=""),
    "by the database": models.CharField(max_length=9, db_default=""),
    "generated and unique": models.GeneratedField(
        expression=Lower("username"),
        output_field=models.CharField(max_length=150),
        db_persist=True,
        unique=True,
    ),
    "generated and empty": models.GeneratedField(
        expression=Lower("first_name"),
        output_field=models.CharField(max_length=150),
        db_persist=True,
        null=True,
    ),
}


@pytest.mark.parametrize(
    "with_field",
    OF_THE_MODEL.values(),
    ids=OF_THE_MODEL,
    indirect=True,
)
def test_a_field_that_the_model_fills(with_field, service, updates):
    """It is the site's own: nobody is refused for it, at the first sign-in or a later one."""
    updates(lambda profile: {"last_name": "Changed"})
    assert sign_in(Client()).status_code == 302
    assert sign_in(Client()).status_code == 302
    user = User.objects.get()
    assert user.last_name == "Changed"
    assert hasattr(user, with_field)
    assert not any(found.id == "django_identity.E041" for found in run_checks())
    assert erasure.erase_account(user).erased_at is not None


def raising(*_given: Any, **_about: Any) -> Any:
    raise LookupError("ada@example.org is not on the list")


@pytest.fixture
def meeting() -> Iterator[list[Exception]]:
    """Errors that a receiver of the site raises, one for each link that is written."""
    errors: list[Exception] = []

    def meet(**_about: Any) -> None:
        if errors:
            raise errors.pop()

    post_save.connect(meet, sender=LinkedIdentity)
    yield errors
    post_save.disconnect(meet, sender=LinkedIdentity)


@pytest.mark.parametrize("error", [IntegrityError, DataError, ValidationError])
def test_what_the_database_refuses_each_time_is_told_so(
    client,
    service,
    refused,
    caplog,
    meeting,
    error,
):
    meeting += [error("ada@example.org")] * 3
    response = sign_in(client)
    assert error.__name__ in caplog.text
    refused(response, "user_fields_refused")
    assert len(meeting) == 1
    assert not User.objects.exists()


def test_what_the_database_refuses_once_is_tried_again(client, service, meeting):
    """Another request was a moment earlier."""
    meeting += [IntegrityError(), OperationalError(), IntegrityError()]
    assert sign_in(client).status_code == 302
    assert is_signed_in(client)


ADDRESS_FIELDS = {
    "EmailField": models.EmailField(blank=True),
    "CharField": models.CharField(max_length=99, default=""),
}


@pytest.mark.parametrize(
    "with_field",
    ADDRESS_FIELDS.values(),
    ids=ADDRESS_FIELDS,
    indirect=True,
)
def test_the_address_is_in_the_field_that_the_user_model_names(
    with_field,
    service,
    monkeypatch,
    mailoutbox,
):
    """It is stored, it gets the notices, and it makes no second account."""
    monkeypatch.setattr(User, "EMAIL_FIELD", with_field)
    assert sign_in(Client()).status_code == 302
    user: Any = User.objects.get()
    assert user.extra == "ada@example.org"
    assert user.email == ""
    assert "ada@example.org" in str(dossier.export_of(user))
    interventions.revoke(LinkedIdentity.objects.all())
    assert mailoutbox[-1].to == ["ada@example.org"]
    service.subject = "another"
    assert "email_taken" in sign_in(Client()).text
    assert User.objects.count() == 1


UNIQUE = models.EmailField(unique=True, null=True, blank=True)


@pytest.mark.parametrize("with_field", [UNIQUE], ids=["unique"], indirect=True)
@pytest.mark.parametrize("profile", [None, {"email": "no address"}])
def test_people_without_an_address_where_it_is_unique(
    with_field,
    service,
    settings,
    monkeypatch,
    profile,
):
    """NULL for each of them, and no second person is refused: Django makes it an empty text."""
    monkeypatch.setattr(User, "EMAIL_FIELD", with_field)
    if profile is None:
        settings.DJANGO_IDENTITY = service.settings(SCOPES=["claims:read"])
    service.profile = profile or {}
    for number in range(3):
        service.subject = f"subject-{number}"
        assert sign_in(Client()).status_code == 302
    assert [*User.objects.values_list(with_field, flat=True)] == [None] * 3


#: What is stored as the address "ada@kelvin.org".
KELVIN = (
    "ada@\u212aelvin.org",
    " ada@kelvin.org ",
    "ada@kelvin.org\u00a0",
    " ADA@KELVIN.ORG",
    "\u3000ada@kelvin.org",
    "ada@KELVIN.ORG",
)
#: One mailbox: what an account has, and what the service says of another person.
ONE_MAILBOX = [
    *(("ada@kelvin.org", said) for said in KELVIN),
    ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
    ("ada@xn--bcher-kva.example", "ada@b\u00fccher.example"),
    ("ada@XN--BCHER-KVA.example", "ada@b\u00fccher.example"),
    ("ada@fa\u00df.example", "ada@xn--fa-hia.example"),
    ("ada@xn--fa-hia.example", "ada@fa\u00df.example"),
    ("ada@xn--e1afmkfd.example", "ada@\u043f\u0440\u0438\u043c\u0435\u0440.example"),
    ("ada@b\u00fccher.example", "ada@B\u00dcCHER.example"),
]


@pytest.mark.parametrize(("stored", "said"), ONE_MAILBOX)
def test_one_mailbox_makes_no_second_account(client, service, refused, stored, said):
    """However it is written, as in Unicode and Punycode. The account keeps the one that it has."""
    user = User.objects.create(username="ada", email=stored)
    service.profile = {"email": said}
    refused(sign_in(client), "email_taken")
    assert User.objects.count() == 1
    user.delete()
    assert sign_in(Client()).status_code == 302
    assert User.objects.get().email.lower() == said.strip().lower()


#: What two accounts could share under two spellings, or what hides a part of itself: not stored.
NO_ADDRESSES = {
    "with a name": "Ada <ada@kelvin.org>",
    "two": "ada@kelvin.org, eve@kelvin.org",
    "control character": "ada@kelvin.org\n",
    "line separator": "ada@kelvin.org\u2028",
    "invisible in the domain": "ada@kel\u200bvin.org",
    "word joiner at the end": "ada@kelvin.org\u2060",
    "direction": "ada@kelvin\u202e.org",
    "replacement character": "ada@kelvin.org\ufffd",
    "quoted": '"ada"@kelvin.org',
    "wide domain": "ada@\uff4belvin.org",
    "wide local part": "\uff41da@kelvin.org",
    "kelvin sign in the local part": "\u212aate@kelvin.org",
    "no domain": "ada@kelvin",
    "another full stop": "ada@kelvin\u3002org",
    "half a character in Punycode": "ada@xn--.example",
}
#: Also Punycode that nothing reads: it is one spelling.
STORED = (
    "ada@b\u00fccher.example",
    "ada+x@example.org",
    "o'hara@a-b.org",
    "ada@xn--99999999.example",
    "ada@xn--0.example",
    "ada@xn--a-ecp.example",
)


@pytest.mark.parametrize(
    ("email", "stored"),
    [
        *((email, "") for email in NO_ADDRESSES.values()),
        *((f" {email}", email) for email in STORED),
    ],
    ids=[*NO_ADDRESSES, *STORED],
)
def test_an_address_is_stored_as_it_is_or_not_at_all(
    client,
    service,
    says,
    email,
    stored,
):
    """The person is in, and the policy sees what is stored."""
    make_user(email="ada@kelvin.org")
    seen: list[str] = []
    says("may_sign_up", lambda profile: seen.append(profile.email) or True)
    service.profile = {"email": email}
    assert sign_in(client).status_code == 302
    assert User.objects.latest("pk").email == stored
    assert seen == [stored]


@pytest.mark.parametrize("way", ["manager", "policy"])
def test_the_stored_address_counts(client, service, refused, says, monkeypatch, way):
    make_user(email="ada@example.org")
    service.profile = {"email": "ada+identity@example.org"}
    create_user = UserManager.create_user

    def without_tag(self: Any, username: str, email: str = "", **more: Any) -> Any:
        return create_user(self, username, email.replace("+identity", ""), **more)

    if way == "manager":
        monkeypatch.setattr(UserManager, "create_user", without_tag)
    else:
        says(
            "new_user_fields",
            lambda profile: {
                "username": "new",
                "email": profile.email.replace("+identity", ""),
            },
        )
    refused(sign_in(client), "email_taken")
    assert User.objects.count() == 1


def test_an_address_of_a_hidden_account_is_taken(
    client,
    service,
    refused,
    updates,
    hiding,
):
    """The site's default manager hides accounts that were closed; their address stays theirs."""
    make_user("closed", email="ada@example.org", last_name="Closed")
    refused(sign_in(client), "email_taken")
    assert not User.objects.exists()
    service.profile = {"email": "new@example.org"}
    assert sign_in(client).status_code == 302
    updates(lambda profile: {"email": profile.email})
    service.profile = {"email": "ada@example.org"}
    assert sign_in(Client()).status_code == 302
    assert User.objects.get().email == "new@example.org"


BEFORE = {"email": "ada@example.org", "first_name": "Ada", "last_name": "Obi"}


@pytest.mark.parametrize(
    ("profile", "error"),
    [
        (
            {
                "email": "ada@new.example",
                "first_name": "Adaeze",
                "last_name": "Obi-Eze",
            },
            "",
        ),
        ({"email": "other@example.org"}, "EmailTaken"),
        ({"email": "OTHER@example.org"}, "EmailTaken"),
        ({"email": "no address"}, "ValidationError"),
        ({"email": "a@b.example\nBcc: all@b.example"}, "ValidationError"),
    ],
)
def test_the_account_follows_the_identity(service, caplog, updates, profile, error):
    """With an address that is taken or none, all stays as it was: no two accounts get one."""
    updates(lambda profile: {name: getattr(profile, name) for name in BEFORE})
    make_user("first", email="other@example.org")
    assert sign_in(Client()).status_code == 302
    service.profile = {**BEFORE, "last_name": "Obi-Eze", **profile}
    assert sign_in(Client()).status_code == 302
    user = User.objects.latest("pk")
    expected = BEFORE if error else profile
    assert {name: getattr(user, name) for name in BEFORE} == expected
    if error:
        assert f"identity.user_update.failed error={error}" in caplog.text
        assert profile["email"][:20] not in caplog.text


def breaks_down_twice() -> Callable[[User], None]:
    """A deadlock ends the whole transaction."""
    errors = [OperationalError(), InterfaceError()]

    def break_down(_user: User) -> None:
        if errors:
            raise errors.pop()

    return break_down


async def later() -> None:
    """As a method that is written ``async``."""


FAILED = "identity.user_update.failed error="
#: What the policy does -> the status, whether it was written, and the log.
UPDATES = {
    "nothing more": (lambda user: None, 302, True, ""),
    "loses its connection": (breaks_down_twice(), 302, True, ""),
    "raises": (raising, 302, False, FAILED),
    "rolls back": (lambda user: set_rollback(True), 302, False, FAILED),
    # Nobody is signed in to what is no account any more.
    "erases": (
        lambda user: erasure.erase_account(user) and None,
        500,
        False,
        "may not write is_active, password",
    ),
    "returns fields": (
        lambda user: {},
        500,
        False,
        "update_user returned dict, not None",
    ),
    "is async": (
        lambda user: closed(later()),
        500,
        False,
        "update_user returned coroutine, not",
    ),
}


def closed(coroutine: Any) -> Any:
    """The coroutine, without the warning that nobody has awaited it."""
    coroutine.close()
    return coroutine


@pytest.mark.parametrize(
    ("then", "status", "is_written", "told"),
    UPDATES.values(),
    ids=UPDATES,
)
def test_an_update_is_written_whole_or_not_at_all(
    service,
    monkeypatch,
    caplog,
    then,
    status,
    is_written,
    told,
):
    def update_user(_policy: IdentityPolicy, user: User, **_about: Any) -> Any:
        Group.objects.create(name="written")
        user.last_name = "Changed"
        user.save()
        return then(user)

    sign_in(Client())
    monkeypatch.setattr(IdentityPolicy, "update_user", update_user)
    browser = Client()
    assert sign_in(browser).status_code == status

    assert is_signed_in(browser) is (status == 302)
    assert User.objects.get().last_name == ("Changed" if is_written else "Obi")
    assert Group.objects.count() == is_written
    assert LinkedIdentity.objects.exists()
    assert told in caplog.text
    assert (FAILED in caplog.text) is (told == FAILED)
    assert "ada@example.org" not in caplog.text


@pytest.mark.parametrize(
    ("method", "given", "named"),
    [
        ("new_user_fields", None, "None"),
        ("account_with_email", False, "bool"),
        ("account_with_email", [], "list"),
        ("account_with_email", User.objects.none(), "QuerySet"),
    ],
    ids=["no return", "False", "a list", "a query"],
)
def test_a_method_that_returns_something_else_is_named(
    service,
    caplog,
    monkeypatch,
    method,
    given,
    named,
):
    """Whoever forgot a ``return`` reads where, and nobody is told that they have an account."""
    monkeypatch.setattr(IdentityPolicy, method, lambda *_, **__: given)
    assert sign_in(Client()).status_code == 500
    assert f"{method} returned {named}, not" in caplog.text
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("score", "is_refused"),
    [
        (49, False),
        (50, True),
        (None, False),
        ("12", False),
        (50.5, True),
        ("99", True),
        (True, False),
        ([1], False),
    ],
)
def test_a_risk_score_is_a_number(client, service, refused, says, score, is_refused):
    """Or a text that is one; a high score is never taken for none."""
    service.profile = {"risk_score": score}
    says("may_sign_up", lambda profile: (profile.risk_score or 0) < 50)
    response = sign_in(client)
    if is_refused:
        refused(response, "sign_up_refused")
    else:
        assert response.status_code == 302
