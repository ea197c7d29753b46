"""The authentication backend: what it gives beside the session, and what it never gives."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import aauthenticate, aget_user, authenticate
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest
from django.urls import reverse

from django_identity.backends import BACKEND_PATH
from django_identity.models import Consent, LinkedIdentity
from tests.factories import again, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LOOK, REVOKE = "view_linkedidentity", "revoke_linkedidentity"


@pytest.fixture(autouse=True)
def _ours_alone(settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = [BACKEND_PATH]


@pytest.fixture
def operator() -> User:
    """Staff who may look, and who may revoke by a group."""
    user = make_user("olu", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename=LOOK))
    group = user.groups.create(name="operators")
    group.permissions.add(Permission.objects.get(codename=REVOKE))
    return user


def test_staff_may_do_what_djangos_own_backend_allows(operator, client):
    """By themselves and by their groups, for a whole app, and in the admin."""
    make_identity(operator)
    for codename in (LOOK, REVOKE):
        assert again(operator).has_perm(f"django_identity.{codename}")
        assert async_to_sync(again(operator).ahas_perm)(f"django_identity.{codename}")
    assert again(operator).has_module_perms("django_identity")
    assert [*User.objects.with_perm(f"django_identity.{LOOK}")] == [operator]

    client.force_login(operator)
    listed = reverse("admin:django_identity_linkedidentity_changelist")
    assert client.get(listed).status_code == 200


def test_it_allows_no_more(operator):
    """Nothing about one row, nothing that was not given, and nothing to a disabled account."""
    identity = make_identity(operator)
    asked = again(operator)
    assert not asked.has_perm(f"django_identity.{LOOK}", identity)
    assert not asked.has_perm("django_identity.erase_linkedidentity")
    assert not asked.has_module_perms("auth")
    User.objects.update(is_active=False)
    assert again(operator).get_all_permissions() == set()
    assert not async_to_sync(again(operator).ahas_perm)(f"django_identity.{LOOK}")


def test_it_takes_no_password(client):
    """Whoever knows the password of an account has to be let in by another backend."""
    make_identity(make_user())
    given = {"username": "ada", "password": "a password"}
    assert authenticate(HttpRequest(), **given) is None
    assert async_to_sync(aauthenticate)(HttpRequest(), **given) is None
    assert not client.login(**given)


@pytest.mark.parametrize(
    ("model", "changed"),
    [(LinkedIdentity, {"consent": Consent.REVOKED}), (User, {"is_active": False})],
    ids=str,
)
def test_async_code_finds_nobody_either(client, model, changed):
    """In a session that has ended. Django's own backend reads the user there by itself."""
    user = make_identity(make_user()).user
    client.force_login(again(user))
    request = HttpRequest()
    request.session = client.session
    assert async_to_sync(aget_user)(request) == user

    model.objects.update(**changed)

    assert async_to_sync(aget_user)(request).is_anonymous
