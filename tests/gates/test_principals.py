"""A principal that is no user, with the number of one: it acts for nobody."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from django.urls import path
from rest_framework.authentication import TokenAuthentication
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from django_identity.api.permissions import HasKycLevel
from django_identity.api.views import ConnectView, DisconnectView, MeView
from django_identity.models import LinkedIdentity
from django_identity.views import account
from tests.factories import make_claim, make_identity, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


class Gated(APIView):
    permission_classes: Any = [HasKycLevel("level_1")]
    authentication_classes: Any = [TokenAuthentication]

    def get(self, request: Any) -> Response:
        return Response("secret")


urlpatterns = [path("gated/", Gated.as_view())]


@pytest.fixture
def ada() -> User:
    user = make_user()
    make_claim(make_identity(user))
    return user


def device(user: User) -> Any:
    return SimpleNamespace(pk=user.pk, id=user.pk, is_authenticated=True, is_active=True)


def ask(view: type[APIView], principal: Any, method: str = "post", **body: str) -> Response:
    request = getattr(APIRequestFactory(), method)("/", body, format="json")
    force_authenticate(request, user=principal)
    return view.as_view()(request)


def test_the_api_acts_for_users_alone(ada: User) -> None:
    """A device of the same number neither reads, nor links, nor lets go what the user has."""
    assert ask(DisconnectView, device(ada)).status_code in (401, 403)
    assert ask(ConnectView, device(ada), connect_code="CNX-AAAA-BBBB").status_code in (401, 403)
    assert ask(MeView, device(ada), "get").data["is_linked"] is False
    assert LinkedIdentity.objects.filter(user=ada).exists()


@pytest.mark.parametrize("page", [account.account, account.download, account.disconnect])
@pytest.mark.parametrize("method", ["get", "post"])
def test_the_pages_act_for_users_alone(ada: User, page: Any, method: str) -> None:
    """Whatever a middleware of the site's has put in the user's place."""
    request: Any = getattr(RequestFactory(), method)("/")
    request.user, request.session = device(ada), {}
    request._dont_enforce_csrf_checks = True
    with override_settings(ROOT_URLCONF="tests.urls"):
        response: HttpResponse = page(request)
    assert response.status_code in (302, 405)
    assert LinkedIdentity.objects.filter(user=ada).exists()


@pytest.mark.parametrize("nobody", [None, "django.contrib.auth.models.AnonymousUser"])
def test_nobody_is_told_no(client: Any, nobody: Any) -> None:
    """With ``UNAUTHENTICATED_USER = None`` too, where there is no user at all."""
    with override_settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": nobody}):
        assert client.get("/gated/").status_code == 401
