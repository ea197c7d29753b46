"""Which sessions end: those of an identity that is gone, and no others."""

from __future__ import annotations

import pytest
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from django_identity.api.views import DisconnectView
from django_identity.models import LinkedIdentity
from tests.faces.conftest import sign_in
from tests.faces.connect.pages import LOCAL
from tests.hostile import HostileService
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def confirm_password(request: HttpRequest) -> HttpResponse:
    """A site's own page before something important."""
    login(request, request.user, backend=LOCAL)
    return HttpResponse(request.user.get_username())


def who(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.user.get_username())


urlpatterns = [
    path("", who),
    path("confirm/", confirm_password),
    path("identity/", include("django_identity.urls")),
]


class Anybody(BaseAuthentication):
    """A token's holder, on a site without sessions."""

    def authenticate(self, request: Request) -> tuple[User, None]:
        return User.objects.get(), None


def signed_in_as(client: Client) -> str:
    return client.get("/").content.decode()


@pytest.fixture
def two_applications(service: HostileService) -> override_settings:
    return override_settings(
        DJANGO_IDENTITY={"default": service.settings(), "second": service.settings()}
    )


@pytest.mark.parametrize("way", ["page", "api"])
@pytest.mark.parametrize("is_linked", [True, False])
def test_disconnecting_elsewhere_signs_nobody_out(
    client: Client, two_applications: override_settings, way: str, is_linked: bool
) -> None:
    """Where there is no bond, and where the session rests on another application's identity."""
    with two_applications:
        sign_in(client)
        user = User.objects.get()
        if is_linked:
            make_identity(user, application="second", subject="second-subject")
        name = "identity:disconnect" if way == "page" else "identity:api:disconnect"
        response = client.post(reverse(name, args=["second"]))
        assert response.status_code == 200
        if way == "api":
            assert response.json() == {"disconnected": is_linked, "signed_out": False}
        assert signed_in_as(client) == user.username
        client.post(reverse("identity:disconnect"))
        assert signed_in_as(client) == ""


@pytest.mark.parametrize("is_linked", [True, False])
def test_disconnecting_without_sessions(is_linked: bool) -> None:
    """A site whose API knows its users by tokens alone."""
    user = make_user()
    if is_linked:
        make_identity(user)
    view = DisconnectView.as_view(authentication_classes=[Anybody])
    response = view(APIRequestFactory().post("/", format="json"))
    assert response.data == {"disconnected": is_linked, "signed_out": False}
    assert not LinkedIdentity.objects.exists()


@override_settings(ROOT_URLCONF="tests.faces.test_session_ends")
def test_a_password_in_between_does_not_sign_out(client: Client, service: HostileService) -> None:
    """A session that another backend takes over goes on as that backend's, with what is in it."""
    sign_in(client)
    session = client.session
    session["basket"] = "kept"
    session.save()
    name = signed_in_as(client)
    assert client.post("/confirm/").content.decode() == name != ""
    assert signed_in_as(client) == name
    assert client.session["basket"] == "kept"
    LinkedIdentity.objects.update(consent="revoked")
    assert signed_in_as(client) == name, "it is the password's session now"


@override_settings(ROOT_URLCONF="tests.faces.test_session_ends")
def test_one_person_object_in_two_sessions(service: HostileService) -> None:
    """What binds a session to a consent stays with that session."""
    by_identity, by_password = Client(), Client()
    sign_in(by_identity)
    user = User.objects.get()
    by_identity.force_login(user, backend="django_identity.backends.IdentityBackend")
    by_password.force_login(user, backend=LOCAL)
    assert signed_in_as(by_identity) == signed_in_as(by_password) == user.username
