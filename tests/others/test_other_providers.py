"""Our client against an identity service on Authlib's server, with credentials by ``sd-jwt``.

The service is written after the specification, without a line of the sandbox. Its records are in
memory.
"""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx
import pytest
from authlib.integrations.django_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import (
    AuthorizationCodeMixin,
    ClientMixin,
    TokenMixin,
    grants,
)
from authlib.oauth2.rfc7636 import CodeChallenge
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.test import Client as Browser
from django.test import override_settings
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from django_identity import conf
from django_identity.exceptions import InvalidGrant
from django_identity.gates import claims_of
from django_identity.lifecycle.ground import sealing
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.service import ServiceClient
from django_identity.testing import browser
from tests import urls
from tests.lifecycle.refetches import refetched
from tests.sandbox.driver import TLS

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]
CLIENT_ID, CLIENT_SECRET = "authlib-client", secrets.token_urlsafe(32)
REDIRECT_URI = "http://testserver/identity/callback/"
METHODS = ["client_secret_post"]
# A subject is opaque text, whatever it holds.
SUBJECT = "Ünï/..%2F?#&=+ 'x' \"<b>\" \\ 😀"
VALUES = {"age_over_18": True, "country_resident": "NG", "unique_human": True}
KEY = JWK.generate(kty="EC", crv="P-256", kid="provider-1")


class Client(ClientMixin):
    """The site, as Authlib asks about a client."""

    client_id = CLIENT_ID
    get_allowed_scope = staticmethod(str)
    check_redirect_uri = staticmethod(REDIRECT_URI.__eq__)
    check_client_secret = staticmethod(CLIENT_SECRET.__eq__)
    check_endpoint_auth_method = staticmethod(lambda method, _of: method in METHODS)
    check_response_type = staticmethod("code".__eq__)
    check_grant_type = staticmethod(
        ("authorization_code", "refresh_token").__contains__,
    )


@dataclass
class Code(AuthorizationCodeMixin):
    scope: str
    code_challenge: str
    code_challenge_method: str

    get_redirect_uri = staticmethod(lambda: REDIRECT_URI)

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):
    access_token: str
    refresh_token: str
    scope: str
    revoked: bool = False

    check_client = staticmethod(lambda _client: True)
    get_scope = Code.get_scope


CODES: dict[str, Code] = {}
TOKENS: list[Token] = []


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = METHODS

    def save_authorization_code(self, code: str, request: Any) -> None:
        asked = request.payload
        challenge = asked.data["code_challenge"], asked.data["code_challenge_method"]
        CODES[code] = Code(asked.scope, *challenge)

    # It is good once, so there is nothing to delete.
    query_authorization_code = staticmethod(lambda code, _client: CODES.pop(code, None))
    delete_authorization_code = staticmethod(lambda _code: None)
    authenticate_user = staticmethod(lambda _code: SUBJECT)


class RefreshGrant(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = METHODS

    authenticate_user = staticmethod(lambda _token: SUBJECT)

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        held = (each for each in TOKENS if each.refresh_token == refresh_token)
        return next((each for each in held if not each.revoked), None)

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.revoked = True


class Server(AuthorizationServer):
    def query_client(self, client_id: str) -> Client | None:
        return Client() if client_id == CLIENT_ID else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        names = ("access_token", "refresh_token", "scope")
        TOKENS.append(Token(*(token[name] for name in names)))


server = Server(Client, Token)
server.load_config({"refresh_token_generator": True})
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)


def authorize(request: HttpRequest) -> HttpResponse:
    """The person is signed in, and approves."""
    grant = server.get_consent_grant(request, end_user=SUBJECT)
    how: Any = {"grant_user": SUBJECT, "grant": grant}
    return server.create_authorization_response(request, **how)


@csrf_exempt
def token(request: HttpRequest) -> HttpResponse:
    return server.create_token_response(request)


def user(request: HttpRequest, subject: str, what: str) -> HttpResponse:
    """A user endpoint, for the scopes of its Bearer token."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    known = [each for each in TOKENS if each.access_token == given]
    (held,) = [each for each in known if not each.revoked]
    assert f"{what}:read" in held.scope.split()
    assert subject in ("me", SUBJECT)
    beside = {"provider": "KYC", "revoked": False}
    listed = [{"claim_type": name, **beside} for name in VALUES]
    data = {
        "profile": {
            "id": SUBJECT,
            "email": "ada@example.org",
            "first_name": "Ada",
            "last_name": "Öbi",
            "country": "NG",
            "kyc_level": "level_2",
            "risk_score": 3,
        },
        "kyc": {
            "kyc_level": "level_2",
            "status": "verified",
            "verified_at": "2026-11-01T10:00:00Z",
            "provider": "KYC",
        },
        "claims": {
            "user_id": SUBJECT,
            "claims": listed,
            "credential_format": "dc+sd-jwt",
            "credential": credential(request.build_absolute_uri("/").rstrip("/")),
        },
    }
    return JsonResponse({"success": True, "data": data[what]})


def credential(origin: str) -> str:
    now = int(time.time())
    payload: dict[Any, Any] = {
        "iss": origin,
        "aud": CLIENT_ID,
        "sub": SUBJECT,
        "environment": "test",
        "iat": now,
        "exp": now + 24 * 3600,
    }
    payload |= {SDObj(name): value for name, value in VALUES.items()}
    header = {"typ": "dc+sd-jwt", "kid": "provider-1"}
    issued = SDJWTIssuer(payload, KEY, extra_header_parameters=header)
    return str(issued.sd_jwt_issuance)


def key_set(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"keys": [KEY.export_public(as_dict=True)]})


# The site and the provider: the live server answers for both.
urlpatterns = [
    path("oauth2/auth", authorize),
    path("oauth2/token", token),
    path("api/v1/users/<path:subject>/<str:what>", user),
    path(".well-known/jwks.json", key_set),
    *urls.urlpatterns,
]


@pytest.fixture
def site(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    given = {
        "ENVIRONMENT": "test",
        "BASE_URL": f"{live_server.url}/api/v1",
        "AUTH_URL": live_server.url,
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
    }
    with override_settings(DJANGO_IDENTITY=given, ROOT_URLCONF=__name__):
        yield given


def came_back(client: Browser) -> HttpResponseBase:
    """Press the button; the provider knows the person, who approves."""
    leaving = browser.begin(client, next_url="/", secure=False)
    answer = httpx.get(leaving, verify=TLS, trust_env=False)
    assert answer.status_code == 302, answer.text
    assert urlsplit(answer.headers["Location"]).netloc == "testserver"
    return browser.come_back(client, answer.headers["Location"], secure=False)


def test_a_person_signs_in(client, site):
    """Whoever they are: the subject is opaque text, learnt from ``/users/me/…``."""
    answer: Any = came_back(client)
    assert answer.status_code == 302
    assert answer["Location"] == "/"
    # In another browser, to the same account.
    came_back(Browser())
    identity = LinkedIdentity.objects.get()
    assert identity.subject == SUBJECT
    assert claims_of(identity.user) == VALUES
    assert standing_of(identity.user).level_shortfall("level_2") is None
    assert identity.user.last_name == "Öbi"


def test_another_providers_refresh_tokens_are_spent_once(client, site):
    """An expired access token is refreshed; the spent refresh token is of no use."""
    came_back(client)
    identity, grant = LinkedIdentity.objects.get(), TokenGrant.objects.get()
    spent = sealing.unseal(identity, grant, "refresh_token")
    before = sealing.unseal(identity, grant, "access_token")
    TokenGrant.objects.update(access_expires_at=timezone.now())
    assert access_token_for(identity) != before
    assert refetched(identity) is Refetched.STORED
    with pytest.raises(InvalidGrant):
        ServiceClient(conf.application()).refresh(spent)


def test_a_wrong_secret_is_told(client, site):
    """As a mistake of the site's operators, whose reference is on the page."""
    given = {**site, "CLIENT_SECRET": "another-secret-of-some-length"}
    with override_settings(DJANGO_IDENTITY=given):
        page: Any = came_back(client)
    assert "client_rejected" in page.content.decode()
    assert not LinkedIdentity.objects.exists()
