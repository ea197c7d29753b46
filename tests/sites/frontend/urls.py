"""Two endpoints that the front end calls, each behind a gate, beside the pages of the walk."""

from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim
from tests.sites.plain.urls import urlpatterns as pages


class Adults(APIView):
    permission_classes = [HasClaim("age_over_18")]

    def get(self, request: Request) -> Response:
        return Response({"drink": "wine"})


class Britons(Adults):
    permission_classes = [HasClaim("country_resident=GB")]


urlpatterns = [
    path("shop/adults", Adults.as_view()),
    path("shop/britons", Britons.as_view()),
    path("identity/api/", include("django_identity.api.urls")),
    *pages,
]
