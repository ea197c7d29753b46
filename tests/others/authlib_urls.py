"""The addresses of the provider on Authlib's server. Its records are in memory."""

import secrets
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from authlib.integrations.django_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7636 import CodeChallenge
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from tests.others.resources import REDIRECT_URI, SUBJECT, urls_of

CLIENT = {
    "origin": settings.PROVIDER_ORIGIN,
    "client_id": "authlib-client",
    "client_secret": secrets.token_urlsafe(32),
}


class Client(ClientMixin):
    client_id = CLIENT["client_id"]

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return REDIRECT_URI

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == REDIRECT_URI

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT["client_secret"]

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_post"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in {"authorization_code", "refresh_token"}


class Person:
    pk = SUBJECT


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):
    access_token: str
    refresh_token: str
    scope: str
    expires_at: float
    revoked: bool = False

    def check_client(self, client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return self.revoked


CODES: dict[str, Code] = {}
TOKENS: list[Token] = []


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = ["client_secret_post"]

    def save_authorization_code(self, code: str, request: Any) -> Code:
        asked = request.payload.data
        CODES[code] = Code(
            code, REDIRECT_URI, request.payload.scope,
            asked["code_challenge"], asked["code_challenge_method"],
        )  # fmt: skip
        return CODES[code]

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        return CODES.get(code)

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del CODES[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> Person:
        return Person()


class RefreshGrant(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = ["client_secret_post"]

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        held = (each for each in TOKENS if each.refresh_token == refresh_token)
        return next((each for each in held if not each.revoked), None)

    def authenticate_user(self, refresh_token: Token) -> Person:
        return Person()

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.revoked = True


class Server(AuthorizationServer):
    def query_client(self, client_id: str) -> Client | None:
        return Client() if client_id == CLIENT["client_id"] else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        until = time.time() + token["expires_in"]
        TOKENS.append(Token(token["access_token"], token["refresh_token"], token["scope"], until))


server = Server(Client, Token)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)


def authorize(request: HttpRequest) -> HttpResponse:
    """The person is signed in, and approves."""
    grant = server.get_consent_grant(request, end_user=Person())
    response: HttpResponse = server.create_authorization_response(
        request, grant_user=Person(), grant=grant
    )
    return response


@csrf_exempt
def token(request: HttpRequest) -> HttpResponse:
    response: HttpResponse = server.create_token_response(request)
    return response


def scopes_of(request: HttpRequest) -> set[str] | None:
    _scheme, _space, given = request.headers.get("Authorization", "").partition(" ")
    for each in TOKENS:
        if each.access_token == given and not each.revoked:
            return set(each.scope.split())
    return None


urlpatterns = [
    path("oauth2/auth", authorize),
    path("oauth2/token", token),
    *urls_of(CLIENT, scopes_of),
]
