"""A site whose default manager defers columns, and that raises for each read of a deferred one."""

from typing import Any

import django
import pytest
from django.contrib.auth.models import User, UserManager
from django.test import Client
from django.urls import reverse

from django_identity.models import LinkedIdentity
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

#: A password or a flag deferred is read by Django itself.
DEFERRED = ("email", "last_name", "last_login", "date_joined")


class Deferring(UserManager[User]):
    def get_queryset(self) -> Any:
        users = super().get_queryset().defer(*DEFERRED)
        if django.VERSION >= (6, 1):
            # With it Django raises by itself.
            users = users.fetch_mode(django.db.models.FETCH_RAISE)
        return users


@pytest.fixture(autouse=True, params=["default", "default and base"])
def deferring(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Deferring()
    manager.model = User
    manager.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", manager)
    if "base" in request.param:
        monkeypatch.setitem(vars(User._meta), "base_manager", manager)
    monkeypatch.setattr(User, "objects", manager)
    refresh = User.refresh_from_db

    def refuse(self: User, using: Any = None, fields: Any = None, **more: Any) -> None:
        if fields and self.get_deferred_fields().intersection(fields):
            raise LookupError(f"{fields} are deferred")
        refresh(self, using=using, fields=fields, **more)

    monkeypatch.setattr(User, "refresh_from_db", refuse)


def by_identity(user: User) -> Client:
    client = Client()
    assert sign_in(client).status_code == 302
    assert is_signed_in(client)
    return client


@pytest.mark.parametrize(
    "session", [by_identity, browser_of], ids=["identity", "password"]
)
def test_each_page_of_a_person(service, session):
    """They read what they show, and nothing else of the instance that Django made."""
    user = make_user(email="ada@example.org", first_name="Ada")
    identity = make_identity(user)
    make_grant(identity)
    make_claim(identity)
    browser = session(user)
    for page in ("login", "account", "connect", "disconnect", "erase", "download"):
        assert browser.get(reverse(f"identity:{page}")).status_code == 200, page
    assert "ada@example.org" in browser.get(reverse("identity:account")).text
    assert browser.get(reverse("identity_api:me")).status_code == 200
    assert come_back(browser, begin(browser)).status_code == 302
    assert browser.post(reverse("identity:erase"), follow=True).status_code == 200
    assert not LinkedIdentity.objects.exists()


def test_a_code_and_its_notice(service, mailoutbox):
    user = make_user(email="ada@example.org")
    assert hand_in(browser_of(user)).status_code == 302
    assert mailoutbox[-1].to == ["ada@example.org"]


def test_an_operator_sees_the_person(service):
    identity = make_identity(make_user(email="ada@example.org"))
    operator = browser_of(User.objects.create_superuser("olu"))
    address = "admin:django_identity_linkedidentity_change"
    page = operator.get(reverse(address, args=[identity.pk]))
    assert "ada@example.org" in page.text
    changelist = reverse("admin:django_identity_linkedidentity_changelist")
    for action in ("revoke", "disconnect", "erase"):
        data = {"action": action, "_selected_action": [identity.pk]}
        assert operator.post(changelist, data).status_code in (200, 302), action
