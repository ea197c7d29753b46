"""The views of the JSON API. They use the authentication classes that the site has configured."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from django_identity import conf
from django_identity.api import serializers
from django_identity.api.parsers import BoundedJSONParser
from django_identity.api.problems import exception_handler
from django_identity.backends import begin_session, end_unlinked_session
from django_identity.exceptions import IdentityError
from django_identity.lifecycle import connect, sign_in, step_up, withdrawal
from django_identity.lifecycle.standing import standing_of
from django_identity.logs import LogEvent, log, log_failure
from django_identity.models import LinkedIdentity
from django_identity.views import flow
from django_identity.views.flow import flow_view
from django_identity.views.problems import CHALLENGE
from django_identity.views.sign_in import begin_sign_in, browser_key_of, set_browser_cookie

CALLBACK = ("state", "code", "error")
# Schemes that a browser never adds to a request by itself.
TOKEN_SCHEMES = ("bearer", "jwt", "token")


class _Endpoint(APIView):
    """JSON requests and responses, including errors. Each endpoint checks the user itself."""

    parser_classes = (BoundedJSONParser,)
    renderer_classes = (JSONRenderer,)
    permission_classes = ()
    serializer_class: type[BaseSerializer[Any]]
    failure = LogEvent.SIGN_IN_FAILED
    http_request: HttpRequest

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return flow_view(super().as_view(**initkwargs))

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.http_request = request

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate; then a request that changes something needs the CSRF token.

        A token in ``Authorization`` is enough: no browser adds one by itself.
        """
        super().initial(request, *args, **kwargs)
        scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
        if request.method not in SAFE_METHODS and scheme not in TOKEN_SCHEMES:
            SessionAuthentication().enforce_csrf(request)

    def get_exception_handler(self) -> Any:
        return exception_handler

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, IdentityError):
            alias = str(self.kwargs.get("alias", conf.DEFAULT_ALIAS))
            log_failure(self.failure, exc, application=alias)
        return super().handle_exception(exc)

    def get_authenticate_header(self, request: Request) -> str:
        """With a challenge of its own, a session site answers 401, as the gates do."""
        return super().get_authenticate_header(request) or CHALLENGE

    def sign_in(
        self, request: Request, user: AbstractBaseUser, identity: LinkedIdentity
    ) -> Mapping[str, object]:
        """Begin a session that ends with the consent. Returns members to add to the answer.

        A site with tokens overrides it, and returns the token.
        """
        begin_session(self.http_request, user, identity)
        return {}

    def asked(self) -> dict[str, Any]:
        """The members of the body. Raises ``ValidationError``."""
        given = self.serializer_class(data=self.request.data)
        given.is_valid(raise_exception=True)
        members: dict[str, Any] = given.validated_data
        return members

    def answer(self, told: object, beside: Mapping[str, object] | None = None) -> Response:
        return Response({**self.serializer_class(told).data, **(beside or {})})


class MeView(_Endpoint):
    """The standing of the person, as every gate sees it, and what the site asks for.

    It sets the CSRF cookie, so that it can be the first call of a frontend.
    """

    serializer_class = serializers.MeSerializer

    def get(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(self.http_request, alias)
        told = {
            "is_authenticated": bool(getattr(request.user, "is_authenticated", False)),
            "standing": standing_of(request.user, application=application.alias),
            "scopes": application.scopes,
            "connect_scopes": application.connect_scopes,
            "csrf_token": get_token(self.http_request),
        }
        return self.answer(told)


class LoginView(_Endpoint):
    """Begin a sign-in. The frontend sends the browser to the address."""

    serializer_class = serializers.LoginSerializer

    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(self.http_request, alias)
        user, asked = flow.signed_in_user(request), self.asked()
        if asked["scope"] not in ("", *application.later_scopes):
            raise ValidationError({"scope": _("The site does not ask for this.")}, "scope_refused")
        address, browser_key = begin_sign_in(
            self.http_request,
            application,
            purpose=sign_in.purpose_for(user, application=application),
            user=user,
            next_url=asked["next"],
            more=asked["scope"],
        )
        response = self.answer({"authorization_url": address})
        set_browser_cookie(response, browser_key, request=self.http_request)
        return response


class CallbackView(_Endpoint):
    """Complete a sign-in: the members are the query of the service's redirect.

    For a site whose ``REDIRECT_URI`` is a page of its frontend.
    """

    serializer_class = serializers.CallbackSerializer

    @sensitive_variables()
    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(self.http_request, alias)
        query = self.asked()
        texts = {name: [query[name]] if name in query else [] for name in CALLBACK}
        completed = sign_in.complete(
            application,
            sign_in.Callback.parse(**texts),
            browser_key=browser_key_of(self.http_request),
            user=flow.signed_in_user(request),
        )
        beside: Mapping[str, object] = {}
        if (linked := completed.linked) is not None:
            session = getattr(self.http_request, "session", None)
            former_key = None if session is None else session.session_key
            if linked.session is not None:
                beside = self.sign_in(request, linked.user, linked.session)
            if session is not None:
                step_up.note(session, linked.identity, former_key=former_key)
        log(LogEvent.SIGN_IN_COMPLETED, application=application.alias)
        return self.answer({"next": flow.landing_url(completed.next_url)}, beside)


class ConnectView(_Endpoint):
    """Redeem a Connect code for the signed-in person.

    ``code_spent`` in a problem says whether the person needs a new code.
    """

    serializer_class = serializers.ConnectSerializer
    failure = LogEvent.CONNECT_FAILED

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        response.data["code_spent"] = isinstance(exc, IdentityError) and connect.is_spent(exc)
        return response

    @sensitive_variables()
    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        application = flow.application_of(self.http_request, alias)
        user = flow.signed_in_user(request)
        if user is None:
            raise NotAuthenticated
        identity = connect.redeem(application, self.asked()["connect_code"], user=user)
        log(LogEvent.CONNECT_REDEEMED, application=application.alias)
        return self.answer(identity)


class DisconnectView(_Endpoint):
    """Disconnect the identity, and end the session if it is an identity session."""

    serializer_class = serializers.DisconnectSerializer

    def post(self, request: Request, alias: str = conf.DEFAULT_ALIAS) -> Response:
        user = flow.signed_in_user(request)
        application = flow.application_to_leave(self.http_request, alias, user=user)
        if user is None:
            raise NotAuthenticated
        was_linked = withdrawal.leave(user, application=application)
        signed_out = was_linked and end_unlinked_session(self.http_request)
        if was_linked:
            log(LogEvent.DISCONNECTED, application=application.alias)
        return self.answer({"disconnected": was_linked, "signed_out": signed_out})
