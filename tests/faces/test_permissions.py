"""The gates of Django REST framework."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import override_settings
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim, HasKycLevel
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db


class Adults(APIView):
    permission_classes = [HasClaim("age_over_18") & HasKycLevel("level_2")]

    def get(self, request: Request) -> Response:
        return Response("in")


class Locals(Adults):
    permission_classes = [IsAuthenticated, HasClaim("country_resident", value="NG")]


class Levels(Adults):
    permission_classes = [HasKycLevel("level_3")]


class SecondAdults(Adults):
    permission_classes = [HasClaim("age_over_18", application="second")]


class SecondLevels(Adults):
    permission_classes = [HasKycLevel("level_2", application="second")]


def ask(view: type[APIView], user: User | AnonymousUser) -> HttpResponse:
    request = APIRequestFactory().get("/")
    force_authenticate(request, user=user)
    return view.as_view()(request).render()


def status(view: type[APIView], user: User | AnonymousUser) -> int:
    return ask(view, user).status_code


def test_permissions_open_on_proof_alone() -> None:
    """The same answer as every other gate, alone and combined."""
    user, other = make_user(), make_user("eve")
    make_claim(make_identity(user))
    assert status(Adults, user) == 200
    assert status(Locals, user) == 403
    assert status(Adults, other) == 403
    assert status(Adults, AnonymousUser()) == 401


def test_a_permission_may_ask_for_a_value() -> None:
    """The country must be the one that was asked for."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", "NG")
    assert status(Locals, user) == 200
    assert status(Locals, make_user("eve")) == 403


def test_a_closed_permission_says_what_is_missing() -> None:
    """A stable code, as a closed gate's."""
    user = make_user()
    make_identity(user)
    assert ask(Locals, user).data["code"] == "claim_missing"
    assert ask(Levels, user).data["code"] == "kyc_level_missing"


def test_each_permission_closes_alone() -> None:
    """A level does not stand in for a claim, nor a claim for a level."""
    user = make_user()
    make_claim(make_identity(user, kyc_level="level_1"))
    assert status(Adults, user) == 403
    assert status(Levels, user) == 403


def test_a_permission_asks_about_its_application() -> None:
    """What one application was told opens no gate of another."""
    default = settings.DJANGO_IDENTITY["default"]
    user, other = make_user(), make_user("eve")
    make_claim(make_identity(user, application="second"))
    make_claim(make_identity(other, subject="subject-2"))
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        for view in (SecondAdults, SecondLevels):
            assert status(view, user) == 200
            assert status(view, other) == 403
        assert status(Adults, user) == 403
