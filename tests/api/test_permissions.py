"""The gates of Django REST framework."""

from typing import Any, ClassVar

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import override_settings
from rest_framework.permissions import IsAdminUser, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import Gate, closed_to
from tests.factories import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db


class Page(APIView):
    def get(self, request: Request) -> Response:
        return Response("in")


class OfObject(APIView):
    """The permission is asked about an object, after the view itself asked for none."""

    asked: ClassVar[list[Any]]
    permission_classes = ()

    def get(self, request: Request) -> Response:
        self.permission_classes = self.asked
        self.check_object_permissions(request, object())
        return Response("in")


def ask(user: User | AnonymousUser, *permissions: Any, kind: type[APIView] = Page) -> HttpResponse:
    request = APIRequestFactory().get("/")
    force_authenticate(request, user=user)
    name = "permission_classes" if kind is Page else "asked"
    return type("View", (kind,), {name: list(permissions)}).as_view()(request).render()


def test_a_closed_permission_says_what_is_missing() -> None:
    """A stable code, as a closed gate's."""
    user = make_user()
    make_identity(user)
    closed = ask(user, IsAuthenticated, HasClaim("country_resident=NG")).data
    assert closed["detail"].code == "claim_missing"
    assert closed["detail"] == closed_to(Gate("country_resident=NG"), user).detail
    assert closed["missing"] == "country_resident=NG"
    level = HasKycLevel("level_3")
    assert ask(user, level).data["detail"].code == "kyc_level_missing"
    assert ask(AnonymousUser(), level).data["detail"].code == "not_signed_in"


COMBINED = [
    (HasClaim("age_over_18") & HasKycLevel("level_3"), False),
    (HasKycLevel("level_3") & HasClaim("age_over_18"), False),
    (HasKycLevel("level_3") | HasClaim("age_over_18"), True),
    (IsAdminUser | HasClaim("age_over_18"), True),
    (~HasClaim("unique_human"), True),
    (~HasClaim("age_over_18"), False),
    (~(HasClaim("age_over_18") & HasKycLevel("level_3")), True),
    (HasClaim("age_over_18", "unique_human"), False),
]


@pytest.mark.parametrize("kind", [Page, OfObject])
def test_permissions_combine_as_django_rest_frameworks_own(kind: type[APIView]) -> None:
    """About the request and about an object."""
    user = make_user()
    make_claim(make_identity(user))
    for number, (permission, is_open) in enumerate(COMBINED):
        assert (ask(user, permission, kind=kind).status_code == 200) is is_open, number


def test_a_permission_asks_about_its_application() -> None:
    """What one application was told opens no gate of another."""
    default = settings.DJANGO_IDENTITY["default"]
    user, other = make_user(), make_user("eve")
    make_claim(make_identity(user, application="second"))
    make_claim(make_identity(other, subject="subject-2"))
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        for gate in (
            HasClaim("age_over_18", application="second"),
            HasKycLevel("level_2", application="second"),
        ):
            assert (ask(user, gate).status_code, ask(other, gate).status_code) == (200, 403)
        assert ask(user, HasClaim("age_over_18")).status_code == 403
