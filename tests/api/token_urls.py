"""A site whose API knows tokens and sessions, and whose pages know sessions alone."""

from typing import Any

from django.contrib.auth.models import User
from django.core import signing
from django.urls import include, path
from django.utils.decorators import method_decorator
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.decorators import api_view, authentication_classes
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api import views
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    claim_required,
    closed_response,
    closed_to,
)


def new_token(user: User) -> str:
    return signing.dumps(user.pk)


class ByHeader(BaseAuthentication):
    """``Authorization: Bearer …``."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return user_of(token) if scheme == "Bearer" else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def user_of(token: str) -> tuple[User, str]:
    try:
        return User.objects.get(pk=signing.loads(token)), token
    except signing.BadSignature:
        raise AuthenticationFailed from None


KNOWS_TOKENS: dict[str, Any] = {
    "authentication_classes": (ByHeader, SessionAuthentication)
}
KNOWS_NO_SESSIONS: dict[str, Any] = {"authentication_classes": (ByHeader,)}
login = views.LoginView.as_view(**KNOWS_TOKENS)


class Bar(APIView):
    authentication_classes = (ByHeader,)

    def get(self, request: Request) -> Any:
        closed = closed_to(Gate("age_over_18"), request.user)
        assert closed is not None
        return closed_response(request, closed, on_closed="problem")


# A gate at the wrong place, and at the right one

adult = claim_required("age_over_18", on_closed="problem")


class Who(APIView):
    authentication_classes: Any = KNOWS_TOKENS["authentication_classes"]

    def get(self, request: Request) -> Response:
        return Response(str(request.user))


class Mixed(ClaimRequiredMixin, Who):
    required_claims = ("age_over_18",)


@method_decorator(adult, name="dispatch")
class Dispatched(Who):
    pass


@method_decorator(adult, name="get")
class Handled(Who):
    pass


@api_view(["GET"])
@authentication_classes(KNOWS_TOKENS["authentication_classes"])
def who(request: Request) -> Response:
    return Response(str(request.user))


@api_view(["GET"])
@authentication_classes(KNOWS_TOKENS["authentication_classes"])
@adult
def gated_who(request: Request) -> Response:
    return Response(str(request.user))


urlpatterns = [
    path("around/function/", adult(who)),
    path("around/class/", adult(Who.as_view())),
    path("around/mixin/", Mixed.as_view()),
    path("around/dispatch/", Dispatched.as_view()),
    path("within/function/", gated_who),
    path("within/handler/", Handled.as_view()),
    path("api/login", login),
    path("api/callback", views.CallbackView.as_view(**KNOWS_TOKENS)),
    path("api/me", views.MeView.as_view(**KNOWS_TOKENS)),
    path("tokens-alone/me", views.MeView.as_view(**KNOWS_NO_SESSIONS)),
    path("tokens-alone/bar", Bar.as_view()),
    path("", include("tests.urls")),
]
