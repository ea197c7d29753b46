"""The authorization server's rules on top of django-oauth-toolkit (spec: Authentication)."""

import hashlib
import re
import secrets
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request
from oauthlib.oauth2 import WebApplicationServer
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidRequestError

from django_identity.sandbox.instruments import switches
from django_identity.sandbox.instruments.switches import TokenSubject
from django_identity.sandbox.models import Client, Grant, RefreshToken, User
from django_identity.sandbox.oauth import clients, tokens

_S256_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class AuthorizationServer(WebApplicationServer):
    """Authorization code and refresh grants only, with S256 as the one PKCE method."""

    def __init__(
        self,
        request_validator: OAuth2Validator,
        token_generator: Callable[[Request], str] | None = None,
        token_expires_in: int | None = None,
        refresh_token_generator: Callable[[Request], str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(
            request_validator, token_generator, token_expires_in, refresh_token_generator, **extra
        )
        self.auth_grant.custom_validators.post_auth.append(_require_s256)
        self.auth_grant.custom_validators.pre_token.append(_require_verifier_shape)


class Validator(OAuth2Validator):
    """Clients authenticate in the body or by Basic; tokens expire by the sandbox's clock.

    The toolkit's own OpenID Connect support stays off: what names the subject is a switch.
    """

    def authenticate_client(self, request: Request, *args: object, **kwargs: object) -> bool:
        """Accept ``client_id`` and ``client_secret`` in the body or as Basic, but not in both."""
        if not switches.current().basic_clients or self._extract_basic_auth(request) is None:
            return bool(self._authenticate_request_body(request))
        if request.client_secret:
            raise InvalidRequestError("Send the client's credentials once.", request=request)
        named = request.client_id
        return self._authenticate_basic_auth(request) and named in {None, request.client.client_id}

    def _extract_basic_auth(self, request: Request) -> str | None:
        """Return the Basic credentials; the toolkit knows one spelling of the scheme only."""
        header = request.headers.get("HTTP_AUTHORIZATION", "")
        scheme, _space, encoded = header.partition(" ")
        return encoded if scheme.lower() == "basic" else None

    def confirm_redirect_uri(
        self,
        client_id: str,
        code: str,
        redirect_uri: str,
        client: Client,
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> bool:
        """Refuse another address than the authorization's as a bad grant."""
        if not super().confirm_redirect_uri(client_id, code, redirect_uri, client):
            raise InvalidGrantError("redirect_uri is another one.", request=request)
        return True

    def validate_code(
        self,
        client_id: str,
        code: str,
        client: Client,
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> bool:
        """Refuse a spent code, and end the tokens that it brought (RFC 6749, section 4.1.2)."""
        if super().validate_code(client_id, code, client, request):
            return True
        brought = RefreshToken.objects.filter(code_digest=_digest(code), application=client)
        families = brought.values("token_family")
        for token in RefreshToken.objects.filter(token_family__in=families):
            token.revoke()
        return False

    def validate_refresh_token(
        self, refresh_token: str, client: Client, request: Request, *args: object, **kwargs: object
    ) -> bool:
        """Refuse an expired token; the toolkit sees to reuse, which revokes the family."""
        if not super().validate_refresh_token(refresh_token, client, request, *args, **kwargs):
            return False
        return not request.refresh_token_instance.is_expired()

    def save_bearer_token(
        self, token: dict[str, Any], request: Request, *args: object, **kwargs: object
    ) -> None:
        """Store the tokens and the code's digest; name the subject if the switch says so."""
        super().save_bearer_token(token, request, *args, **kwargs)
        if request.code:
            stored = RefreshToken.objects.filter(token_checksum=_digest(token["refresh_token"]))
            stored.update(code_digest=_digest(request.code))
        token.update(_named_subject(request.user, request.client))


def new_access_token(request: Request, *_unused: object) -> str:
    """Make an access token: opaque, or a JWT if the switch says so."""
    if switches.current().token_subject is TokenSubject.JWT_ACCESS_TOKEN:
        return tokens.jwt_access_token(request.user, client_id=request.client.client_id)
    return secrets.token_urlsafe(32)


def mixes_environments(request: HttpRequest) -> bool:
    """Return whether a refused token request holds a code or token of the other environment.

    Args:
        request: a request whose client did authenticate.
    """
    form, asking = request.POST, clients.authenticate(request)
    named = Client.objects.filter(client_id=form.get("client_id", ""))
    client = asking.client if asking else named.first()
    digest = _digest(form.get("refresh_token", ""))
    presented = (
        Grant.objects.filter(code=form.get("code", "")).select_related("application").first()
        or RefreshToken.objects.filter(token_checksum=digest).select_related("application").first()
    )
    if client is None or presented is None:
        return False
    return bool(presented.application.environment != client.environment)


def _digest(secret: str) -> str:
    """Return what is stored in place of a code or a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _require_s256(request: Request) -> dict[str, object]:
    """Refuse a ``plain`` or malformed challenge (RFC 7636, section 4.3)."""
    if request.code_challenge_method != "S256":
        raise InvalidRequestError("code_challenge_method must be S256.", request=request)
    if not _S256_CHALLENGE.fullmatch(request.code_challenge):
        raise InvalidRequestError("code_challenge must have 43 characters.", request=request)
    return {}


def _require_verifier_shape(request: Request) -> None:
    """Refuse a ``code_verifier`` of a wrong length or alphabet (RFC 7636, section 4.1)."""
    verifier = request.code_verifier
    if verifier is not None and not _CODE_VERIFIER.fullmatch(verifier):
        raise InvalidRequestError("code_verifier must have 43 to 128 characters.", request=request)


def _named_subject(user: User, client: Client) -> dict[str, str]:
    """Return the member of the token answer that names the subject, if one is switched on."""
    match switches.current().token_subject:
        case TokenSubject.USER_ID:
            return {"user_id": user.subject}
        case TokenSubject.SUB:
            return {"sub": user.subject}
        case TokenSubject.ID_TOKEN:
            return {"id_token": tokens.id_token(user, audience=client.client_id)}
    return {}
