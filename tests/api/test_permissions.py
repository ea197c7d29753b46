"""The gates of Django REST framework."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import override_settings
from rest_framework.authentication import TokenAuthentication
from rest_framework.permissions import IsAdminUser, IsAuthenticated
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import Gate, closed_to
from tests.factories import make_claim, make_identity, make_user
from tests.gates.gated_views import Endpoint, api_answer_of

pytestmark = pytest.mark.django_db


def ask(user: Any, *permissions: Any) -> Response:
    return api_answer_of(Endpoint.as_view(permission_classes=permissions), user)


def test_a_closed_permission_says_what_is_missing():
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


def test_permissions_combine_as_django_rest_frameworks_own():
    """About the request and about an object."""
    request: Any = APIRequestFactory().get("/")
    request.user = make_user()
    make_claim(make_identity(request.user))
    for number, (combined, is_open) in enumerate(COMBINED):
        permission = combined()
        assert permission.has_permission(request, None) is is_open, number
        assert permission.has_object_permission(request, None, object()) is is_open, (
            number
        )


@pytest.mark.parametrize("nobody", [None, "django.contrib.auth.models.AnonymousUser"])
def test_nobody_is_told_no(nobody):
    """With ``UNAUTHENTICATED_USER = None`` too, where there is no user at all."""
    asked = {"permission_classes": [HasKycLevel("level_1")]}
    view = Endpoint.as_view(authentication_classes=[TokenAuthentication], **asked)
    with override_settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": nobody}):
        assert view(APIRequestFactory().get("/")).status_code == 401
