"""The JSON API. Sessions (with their CSRF check) or whatever authentication the site has set up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.views.decorators.debug import sensitive_variables
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity import conf
from django_identity.api.problems import as_problem, problem
from django_identity.api.serializers import ConnectedSerializer, ConnectRequestSerializer
from django_identity.backends import begin_session
from django_identity.exceptions import IdentityError
from django_identity.lifecycle import connect as lifecycle
from django_identity.telemetry import LogEvent, log, log_failure
from django_identity.views.manners import (
    application_or_404,
    client_address,
    flow_view,
)


class ConnectView(APIView):
    """``POST {"connect_code": …}``: redeem a Connect code for whoever is signed in."""

    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    permission_classes = ()
    serializer_class = ConnectRequestSerializer

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return as_problem

    @sensitive_variables()
    def post(self, request: Request, application: str = conf.DEFAULT_ALIAS) -> Response:
        applied = application_or_404(application)
        user = _signed_in_user(request)
        if not lifecycle.may_redeem(applied, user):
            raise NotAuthenticated
        if user is None:
            # Whom nobody has authenticated is signed in by this: a foreign page must not do that.
            SessionAuthentication().enforce_csrf(request)
        given = ConnectRequestSerializer(data=request.data)
        try:
            redeemed = lifecycle.redeem(
                applied,
                given.validated_data["connect_code"] if given.is_valid() else "",
                user=user,
                address=client_address(request, applied),
            )
        except IdentityError as error:
            log_failure(LogEvent.CONNECT_FAILED, error, application=applied.alias)
            return problem(error)
        if redeemed.login:
            begin_session(request._request, redeemed.user, redeemed.identity)
        log(LogEvent.CONNECT_REDEEMED, application=applied.alias)
        return Response(ConnectedSerializer(redeemed.identity).data)


def _signed_in_user(request: Request) -> AbstractBaseUser | None:
    """A site may have set up None for nobody."""
    user: Any = request.user
    return user if user is not None and user.is_authenticated else None


connect = flow_view(ConnectView.as_view())
