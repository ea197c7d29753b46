"""The views of the JSON API. They use the authentication classes that the site has configured."""

from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils.translation import gettext as _
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from django_identity import conf, flows
from django_identity.api import serializers
from django_identity.api.parsers import BoundedJSONParser
from django_identity.api.problems import exception_handler
from django_identity.boundary import is_seen, told
from django_identity.exceptions import FlowError, IdentityError
from django_identity.lifecycle.arriving import connect, sign_in
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.logs import LogEvent, log_failure
from django_identity.web import browser, flow
from django_identity.web.problems import CHALLENGE
from django_identity.web.sessions import end_disconnected_session

# Schemes that a browser never adds to a request by itself.
TOKEN_SCHEMES = ("bearer", "jwt", "token")


class _Endpoint(APIView):
    """JSON requests and responses, including errors. Each endpoint checks the user itself."""

    parser_classes = (BoundedJSONParser,)
    renderer_classes = (JSONRenderer,)
    permission_classes = ()
    # The versions are those of the site's own API.
    versioning_class = None
    serializer_class: type[BaseSerializer[Any]]
    failure = LogEvent.SIGN_IN_FAILED

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return flow.in_flow(super().as_view(**initkwargs))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate; then a request that changes something needs the CSRF token.

        A token in ``Authorization`` is enough: browsers leave that header to scripts.
        """
        super().initial(request, *args, **kwargs)
        scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
        if request.method not in SAFE_METHODS and scheme not in TOKEN_SCHEMES:
            SessionAuthentication().enforce_csrf(request)
        self.user = flow.signed_in_user(request)
        flow.refuse_plain_http(request)

    def get_exception_handler(self) -> Any:
        return exception_handler

    def handle_exception(self, exc: Exception) -> Response:
        if not isinstance(exc, APIException) and not is_seen():
            exc = told(exc)
        if isinstance(exc, IdentityError):
            log_failure(self.failure, exc)
        return super().handle_exception(exc)

    def get_authenticate_header(self, request: Request) -> str:
        """With a challenge of its own, a session site answers 401, as the gates do."""
        return super().get_authenticate_header(request) or CHALLENGE

    def asked(self) -> dict[str, Any]:
        """The members of the body. Raises ``ValidationError``."""
        body = self.serializer_class(data=self.request.data)
        body.is_valid(raise_exception=True)
        return dict(body.validated_data)

    def answer(self, members: object) -> Response:
        return Response(self.serializer_class(members).data)


class MeView(_Endpoint):
    """The standing of the person, as every gate sees it, and what the site asks for.

    It sets the CSRF cookie, so that it can be the first call of a frontend.
    """

    serializer_class = serializers.MeSerializer

    def get(self, request: Request) -> Response:
        application = conf.application()
        members = {
            "is_authenticated": self.user is not None,
            "standing": standing_of(request.user),
            "scopes": application.scopes,
            "connect_scopes": application.connect_scopes,
            "csrf_token": get_token(request),
        }
        return self.answer(members)


class LoginView(_Endpoint):
    """Begin a sign-in. The frontend sends the browser to the address."""

    serializer_class = serializers.LoginSerializer

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        # Whom a page sees: the user of the session, whom the user of a token soon replaces.
        self.seen_by_pages = getattr(request, "user", None)

    def post(self, request: Request) -> Response:
        asked = self.asked()
        is_seen_by_pages = self.user in (None, self.seen_by_pages)
        if not is_seen_by_pages and browser.leads_back_to_a_page():
            # The callback page would not know the user, after the person has consented.
            raise FlowError(
                "a token without the session of its user",
                code="session_needed",
            )
        if asked["scope"] not in ("", *conf.application().later_scopes):
            raise ValidationError(
                {"scope": _("The site does not ask for this.")},
                "scope_refused",
            )
        address, browser_key = browser.begin_sign_in(
            request,
            next_url=asked["next"],
            more=asked["scope"],
        )
        response = self.answer({"authorization_url": address})
        browser.set_cookie(response, browser_key, request=request)
        return response


class CallbackView(_Endpoint):
    """Complete a sign-in: the members are the query of the service's redirect.

    For a site whose ``REDIRECT_URI`` is a page of its frontend.
    """

    serializer_class = serializers.CallbackSerializer

    def post(self, request: Request) -> Response:
        query: dict[str, list[str]] = {"code": [], "error": []}
        for name, text in self.asked().items():
            query[name] = [text]
        returned = sign_in.Callback.parse(**query)
        completed = browser.complete_sign_in(request, returned, user=self.user)
        return self.answer({"next": flow.landing_url(completed.next_url)})


class ConnectView(_Endpoint):
    """Redeem a Connect code for the signed-in person.

    ``code_spent`` in a problem says whether the person needs a new code.
    """

    serializer_class = serializers.ConnectSerializer
    failure = LogEvent.CONNECT_FAILED

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        is_spent = isinstance(exc, IdentityError) and connect.is_spent(exc)
        response.data["code_spent"] = is_spent
        return response

    def post(self, request: Request) -> Response:
        if self.user is None:
            raise NotAuthenticated
        code = self.asked()["connect_code"]
        return self.answer(flows.redeem_code(code, user=self.user))


class DisconnectView(_Endpoint):
    """Disconnect the identity, and end the session if it is an identity session."""

    serializer_class = serializers.DisconnectSerializer
    failure = LogEvent.DISCONNECT_FAILED

    def post(self, request: Request) -> Response:
        if self.user is None:
            raise NotAuthenticated
        was_linked = disconnecting.disconnect_user(self.user)
        signed_out = was_linked and end_disconnected_session(request)
        return self.answer({"disconnected": was_linked, "signed_out": signed_out})
