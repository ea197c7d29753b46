"""The addresses of the provider on django-oauth-toolkit, as its documentation sets it up."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.urls import path
from oauth2_provider.models import Application
from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauth2_provider.views import AuthorizationView, TokenView

from tests.others.resources import REDIRECT_URI, urls_of

CLIENT = {
    "origin": settings.PROVIDER_ORIGIN,
    "client_id": "toolkit-client",
    "client_secret": secrets.token_urlsafe(32),
}
PERSON = User.objects.create_user("ada")
Application.objects.create(
    client_id=CLIENT["client_id"],
    client_secret=CLIENT["client_secret"],
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    redirect_uris=REDIRECT_URI,
    skip_authorization=True,
)


def authorize(request: HttpRequest) -> HttpResponseBase:
    """The person is signed in, and the application is trusted."""
    request.user = PERSON
    return AuthorizationView.as_view()(request)


def scopes_of(request: HttpRequest) -> set[str] | None:
    valid, bearer = get_oauthlib_core().verify_request(request, scopes=[])
    return set(bearer.access_token.scope.split()) if valid else None


urlpatterns = [
    path("oauth2/auth", authorize),
    path("oauth2/token", TokenView.as_view()),
    *urls_of(CLIENT, scopes_of),
]
