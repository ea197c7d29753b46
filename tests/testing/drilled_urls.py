"""Doors of each kind, for the drill."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path, re_path
from django.views import View
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from django_identity.api.permissions import HasClaim
from django_identity.gates import Closed, claim_required, recent_sign_in_required
from django_identity.gates.mixins import KycLevelRequiredMixin

adult = claim_required("age_over_18")


def page(request: HttpRequest, **_: object) -> HttpResponse:
    return HttpResponse("page")


def teaser(request: HttpRequest, closed: Closed) -> HttpResponse:
    """What a closed gate answers."""
    return HttpResponse("half of the page")


def members(request: HttpRequest) -> HttpResponse:
    """Strangers are not told that there is a page."""
    if not request.user.is_authenticated:
        raise Http404
    return adult(page)(request)


def front(request: HttpRequest) -> HttpResponse:
    return HttpResponse('<a href="/bar/">bar</a>')


class Vault(KycLevelRequiredMixin, View):
    required_kyc_level = "level_2"

    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("vault")


class Chosen(APIView):
    """Its own code decides who passes."""

    def get_permissions(self) -> list[Any]:
        return [HasClaim("age_over_18")()]

    def get(self, request: Request) -> Response:
        return Response("chosen")


class Wines(ViewSet):
    permission_classes = [HasClaim("age_over_18")]

    def list(self, request: Request, **_: Any) -> Response:
        return Response([])


class Either(APIView):
    permission_classes = [HasClaim("age_over_18") | IsAdminUser]

    def get(self, request: HttpRequest) -> Response:
        return Response("either")


router = DefaultRouter()
router.register("wines", Wines, basename="wine")

urlpatterns = [
    path("", front, name="home"),
    path("bar/", adult(page)),
    path("bar/<slug:word>/", page),
    path("bar/twice/", adult(page)),
    path("vault/", Vault.as_view()),
    path("leave/", recent_sign_in_required(minutes=5)(page)),
    path("loans/<int:key>/", adult(page)),
    re_path("^old/(?P<key>\\d+)$", adult(page)),
    re_path("^code/(?P<code>[A-Z]{3}-\\d{4})$", adult(page)),
    path("teaser/", claim_required("age_over_18", on_closed=teaser)(page)),
    path("either/", Either.as_view()),
    path("chosen/", Chosen.as_view()),
    path("members/", members),
    path("api/", include(router.urls)),
    path("lisbon/", claim_required("country_resident=PT")(page)),
    path("identity/", include("django_identity.urls")),
]
