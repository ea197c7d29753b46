"""Which sessions end: those of an identity that is gone, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from django_identity.api.views import DisconnectView
from django_identity.backends import BACKEND_PATH, IdentityBackend, backend_of
from django_identity.checks import check_installation
from django_identity.models import LinkedIdentity
from tests.faces.bad_input.test_callback import OF_LIVE
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


class SecondBackend(IdentityBackend):
    application = "second"


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


BACKENDS = [LOCAL, BACKEND_PATH, f"{__name__}.SecondBackend"]


@pytest.fixture
def live_beside_test(service: HostileService) -> Iterator[None]:
    """Two applications, each with a session backend of its own."""
    default, second = service.settings(), service.settings(ENVIRONMENT="live", **OF_LIVE)
    applications = {"default": default, "second": second}
    with override_settings(DJANGO_IDENTITY=applications, AUTHENTICATION_BACKENDS=BACKENDS):
        yield


def in_session_of(user: User, alias: str) -> Client:
    client = Client()
    client.force_login(user, backend=backend_of(alias))
    return client


@pytest.mark.parametrize("ended", ["default", "second"])
@pytest.mark.parametrize("how", ["revoked", "disconnected"])
def test_a_session_ends_with_its_own_consent(live_beside_test: None, ended: str, how: str) -> None:
    """Of one person with two links, whichever is older."""
    user = make_user()
    make_identity(user, application="second", environment="live")
    make_identity(user)
    sessions = {alias: in_session_of(user, alias) for alias in ("default", "second")}
    assert [signed_in_as(each) for each in sessions.values()] == [user.username] * 2
    gone = LinkedIdentity.objects.filter(application=ended)
    if how == "revoked":
        gone.update(consent="revoked", revoked_at=timezone.now())
    else:
        gone.delete()
    for alias, session in sessions.items():
        assert signed_in_as(session) == ("" if alias == ended else user.username)


def test_a_sign_in_begins_a_session_of_its_application(
    service: HostileService, live_beside_test: None
) -> None:
    """And a consent that is given elsewhere does not bring it back."""
    sign_in(client := Client())
    user = User.objects.get()
    assert client.session[BACKEND_SESSION_KEY] == BACKEND_PATH
    make_identity(user, application="second", environment="live")
    LinkedIdentity.objects.filter(application="default").update(consent="revoked")
    assert signed_in_as(client) == ""
    assert signed_in_as(in_session_of(user, "second")) == user.username


def test_one_query_whatever_the_number_of_applications(
    live_beside_test: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_identity(user := make_user())
    make_identity(user, application="second", environment="live")
    for backend in (IdentityBackend(), SecondBackend()):
        with django_assert_num_queries(1):
            assert backend.get_user(user.pk) == user


def test_applications_that_share_a_backend_are_a_mistake(
    live_beside_test: None, settings: Any
) -> None:
    def found() -> list[str]:
        return [each.id for each in check_installation() if each.id.endswith("E020")]

    assert found() == []
    settings.AUTHENTICATION_BACKENDS = BACKENDS[:2]
    assert found() == ["django_identity.E020"]


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
