"""A site whose API knows tokens and sessions, and whose pages know sessions alone."""

from typing import Any

from django.contrib.auth.models import User
from django.core import signing
from django.urls import include, path
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from django_identity.api import views


def new_token(user: User) -> str:
    return signing.dumps(user.pk)


class ByHeader(BaseAuthentication):
    """``Authorization: Bearer …``."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return user_of(token) if scheme == "Bearer" else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ByCookie(BaseAuthentication):
    """The token in a cookie, as dj-rest-auth has it."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        token = request.COOKIES.get("token")
        return user_of(token) if token else None


def user_of(token: str) -> tuple[User, str]:
    try:
        return User.objects.get(pk=signing.loads(token)), token
    except signing.BadSignature:
        raise AuthenticationFailed from None


KNOWS_TOKENS: dict[str, Any] = {
    "authentication_classes": (ByHeader, ByCookie, SessionAuthentication)
}
login = views.LoginView.as_view(**KNOWS_TOKENS)

urlpatterns = [
    path("api/login", login),
    path("api/callback", views.CallbackView.as_view(**KNOWS_TOKENS)),
    path("api/me", views.MeView.as_view(**KNOWS_TOKENS)),
    path("", include("tests.urls")),
]
