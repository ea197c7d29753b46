"""The gates of Django REST framework."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User
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


def status(view: type[APIView], user: User | AnonymousUser) -> int:
    request = APIRequestFactory().get("/")
    force_authenticate(request, user=user)
    return view.as_view()(request).status_code


def test_permissions_open_on_proof_alone() -> None:
    """The same answer as every other gate, alone and combined."""
    user, other = make_user(), make_user("eve")
    make_claim(make_identity(user))
    assert status(Adults, user) == 200
    assert status(Locals, user) == 403
    assert status(Adults, other) == 403
    assert status(Adults, AnonymousUser()) == 403


def test_a_permission_may_ask_for_a_value() -> None:
    """The country must be the one that was asked for."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", "NG")
    assert status(Locals, user) == 200
