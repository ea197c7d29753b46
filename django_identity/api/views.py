"""The views of the JSON API. They use the authentication classes that the site has configured."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.middleware.csrf import get_token
from django.views.decorators.debug import sensitive_variables
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated, ParseError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity import conf
from django_identity.api import serializers
from django_identity.api.parsers import BoundedJSONParser
from django_identity.api.problems import as_problem, problem
from django_identity.backends import begin_session, end_unlinked_session
from django_identity.exceptions import IdentityError
from django_identity.lifecycle import arrival
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity
from django_identity.telemetry import LogEvent, log, log_failure
from django_identity.views import flow
from django_identity.views.flow import flow_view
from django_identity.views.problems import CHALLENGE
from django_identity.views.sign_in import begin_sign_in, browser_key_of, set_browser_cookie

TOKEN_SCHEMES = ("bearer", "jwt", "token")


class _Endpoint(APIView):
    """JSON requests and responses, including errors. Each endpoint checks the user itself."""

    parser_classes = (BoundedJSONParser,)
    renderer_classes = (JSONRenderer,)
    permission_classes = ()

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return flow_view(super().as_view(**initkwargs))

    def sign_in(
        self, request: Request, user: AbstractBaseUser, identity: LinkedIdentity
    ) -> Mapping[str, object]:
        """Begin a session that ends with the consent. Returns members to add to the answer.

        A site with tokens overrides it, and returns the token.
        """
        begin_session(request._request, user, identity)
        return {}

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return as_problem

    def get_authenticate_header(self, request: Request) -> str:
        """With a challenge of its own, a session site answers 401, as the gates do."""
        return super().get_authenticate_header(request) or CHALLENGE

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then refuse forms of other sites."""
        super().initial(request, *args, **kwargs)
        if request.method not in SAFE_METHODS:
            _refuse_foreign_forms(request)


class MeView(_Endpoint):
    """``GET``: the standing of the person, as every gate sees it, and what the site asks for.

    It sets the CSRF cookie, so that it can be the first call of a frontend.
    """

    serializer_class = serializers.MeSerializer

    def get(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(request._request, alias)
        told = {
            "is_authenticated": bool(getattr(request.user, "is_authenticated", False)),
            "standing": standing_of(request.user, application=application.alias),
            "scopes": application.scopes,
            "connect_scopes": application.connect_scopes,
            "csrf_token": get_token(request._request),
        }
        return Response(serializers.MeSerializer(told).data)


class LoginView(_Endpoint):
    """``POST {"next": …}``: begin a sign-in. The frontend sends the browser to the address."""

    serializer_class = serializers.LoginRequestSerializer

    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(request._request, alias)
        user = _signed_in_user(request)
        _refuse_foreign_pages(request, user)
        given = serializers.LoginRequestSerializer(data=request.data)
        if not given.is_valid():
            raise ParseError("The member next is a text.")
        address, browser_key = begin_sign_in(
            request._request,
            application,
            purpose=arrival.purpose_for(user, application=application),
            user=user,
            next_url=given.validated_data["next"],
        )
        response = Response(serializers.StartedSerializer({"authorization_url": address}).data)
        set_browser_cookie(response, browser_key, request=request._request)
        return response


class CallbackView(_Endpoint):
    """``POST {"state": …, "code": …}``: complete a sign-in.

    For a site whose ``REDIRECT_URI`` is a page of its frontend. The members are the redirect's
    query.
    """

    serializer_class = serializers.CallbackRequestSerializer

    @sensitive_variables()
    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(request._request, alias)
        user = _signed_in_user(request)
        _refuse_foreign_pages(request, user)
        given = serializers.CallbackRequestSerializer(data=request.data)
        try:
            query = given.validated_data if given.is_valid() else {}
            names = ("state", "code", "error")
            values = {name: [query[name]] if name in query else [] for name in names}
            returned = arrival.Callback.parse(**values)
            completed = arrival.complete(
                application, returned, browser_key=browser_key_of(request._request), user=user
            )
        except IdentityError as error:
            log_failure(LogEvent.SIGN_IN_FAILED, error, application=application.alias)
            return problem(error)
        beside: Mapping[str, object] = {}
        if completed.login is not None:
            beside = self.sign_in(request, completed.user, completed.login)
        log(LogEvent.SIGN_IN_COMPLETED, application=application.alias)
        done = serializers.CompletedSerializer({"next": flow.landing_url(completed.next_url)})
        return Response({**done.data, **beside})


class ConnectView(_Endpoint):
    """``POST {"connect_code": …}``: redeem a Connect code for the signed-in person.

    ``code_spent`` in an error says whether the person needs a new code.
    """

    serializer_class = serializers.ConnectRequestSerializer

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return partial(as_problem, code_spent=False)

    @sensitive_variables()
    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(request._request, alias)
        user = _signed_in_user(request)
        if not arrival.may_redeem(application, user):
            raise NotAuthenticated
        _refuse_foreign_pages(request, user)
        given = serializers.ConnectRequestSerializer(data=request.data)
        try:
            redeemed = arrival.redeem(
                application,
                given.validated_data["connect_code"] if given.is_valid() else "",
                user=user,
                address=flow.client_address(request, application),
            )
        except IdentityError as error:
            log_failure(LogEvent.CONNECT_FAILED, error, application=application.alias)
            return problem(error, code_spent=arrival.is_spent(error))
        beside: Mapping[str, object] = {}
        if redeemed.login:
            beside = self.sign_in(request, redeemed.user, redeemed.identity)
        log(LogEvent.CONNECT_REDEEMED, application=application.alias)
        return Response({**serializers.ConnectedSerializer(redeemed.identity).data, **beside})


class DisconnectView(_Endpoint):
    """``POST``: disconnect the identity, and end the session if it is an identity session."""

    serializer_class = serializers.DisconnectedSerializer

    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        user = _signed_in_user(request)
        application = flow.application_to_leave(request._request, alias, user=user)
        if user is None:
            raise NotAuthenticated
        was_linked = arrival.unlink(user, application=application)
        signed_out = was_linked and end_unlinked_session(request._request)
        if was_linked:
            log(LogEvent.DISCONNECTED, application=application.alias)
        done = {"disconnected": was_linked, "signed_out": signed_out}
        return Response(serializers.DisconnectedSerializer(done).data)


def _signed_in_user(request: Request) -> AbstractBaseUser | None:
    """The signed-in user, or None. Another principal with the number of a user is no user."""
    return request.user if isinstance(request.user, get_user_model()) else None


def _refuse_foreign_forms(request: Request) -> None:
    """Refuse requests that a form of another site can send.

    The browser adds sessions, Basic credentials and certificates to such a form. It does not let
    another site send JSON or a token in the header.
    """
    scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
    is_json = request._request.content_type == BoundedJSONParser.media_type
    if not is_json and scheme not in TOKEN_SCHEMES:
        SessionAuthentication().enforce_csrf(request)


def _refuse_foreign_pages(request: Request, user: AbstractBaseUser | None) -> None:
    """Require the CSRF token if nobody is signed in: another site must not sign a visitor in."""
    if user is None:
        SessionAuthentication().enforce_csrf(request)
