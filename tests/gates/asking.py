"""Views that ask for a recent sign-in, or for one scope more."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import View
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api.permissions import HasRecentSignIn, HasScope
from django_identity.gates import (
    RecentSignInRequiredMixin,
    ScopeRequiredMixin,
    recent_sign_in_required,
    scope_required,
)
from tests.urls import home


def inside(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


async def inside_async(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


class Inside(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return inside(request)


class Payout(RecentSignInRequiredMixin, Inside):
    recent_sign_in_minutes = 60


class QuickPayout(Payout):
    recent_sign_in_minutes = 5


class Papers(ScopeRequiredMixin, Inside):
    required_scope = "documents:read"


class Endpoint(APIView):
    def get(self, request: Any) -> Response:
        return Response("in")


urlpatterns = [
    path("", home, name="home"),
    path("payout/", recent_sign_in_required(minutes=10)(inside)),
    path("payout/async/", recent_sign_in_required()(inside_async)),
    path("payout/class/", QuickPayout.as_view()),
    path("payout/api/", Endpoint.as_view(permission_classes=[HasRecentSignIn(10)])),
    path("papers/", scope_required("documents:read")(inside)),
    path("papers/class/", Papers.as_view()),
    path("papers/api/", Endpoint.as_view(permission_classes=[HasScope("documents:read")])),
    path("identity/api/", include("django_identity.api.urls")),
    path("identity/", include("django_identity.urls")),
]
