"""The shop's addresses as a router of Django REST framework makes them."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.viewsets import ViewSet

from django_identity.api.permissions import HasClaim


class Wines(ViewSet):
    """Adults see all; what a visitor sees is somebody else's."""

    permission_classes = [HasClaim("age_over_18")]

    def list(self, request: Request, **_: Any) -> Response:
        return Response([])

    def retrieve(self, request: Request, pk: str, **_: Any) -> Response:
        if pk != "1":
            raise Http404
        return Response({"name": "Douro"})


class Juices(ViewSet):
    permission_classes = ()

    def list(self, request: Request, **_: Any) -> Response:
        return Response([])


router = DefaultRouter()
router.register("wines", Wines, basename="wine")
router.register("juices", Juices, basename="juice")
