"""The authorization server's rules on top of django-oauth-toolkit (spec: Authentication)."""

import hashlib
import re
import secrets
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import SettingsScopes
from oauthlib.common import Request
from oauthlib.oauth2 import WebApplicationServer
from oauthlib.oauth2.rfc6749.errors import (
    InvalidGrantError,
    InvalidRequestError,
    InvalidScopeError,
)

from django_identity.sandbox import clients, keys, switches
from django_identity.sandbox.models import Client, Grant, RefreshToken, User

TRUSTED_SCOPES = frozenset({"documents:read"})
_S256_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class AuthorizationServer(WebApplicationServer):
    """Authorization code and refresh grants only, with S256 as the one PKCE method."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auth_grant.custom_validators.pre_auth.append(_require_parameters)
        self.auth_grant.custom_validators.post_auth.append(_require_s256)
        self.auth_grant.custom_validators.pre_token.append(_require_token_parameters)


class TierScopes(SettingsScopes):
    """Every scope for trusted applications, and all but the documents' content for the others."""

    def get_available_scopes(self, application: Any = None, **kwargs: Any) -> list[str]:
        """Return the scopes that the endpoints serve to ``application``."""
        scopes = super().get_available_scopes(application, **kwargs)
        if application is not None and application.registered.document_key:
            return list(scopes)
        return [scope for scope in scopes if scope not in TRUSTED_SCOPES]


class Validator(OAuth2Validator):
    """Clients authenticate in the body; tokens expire by the sandbox's clock.

    The toolkit's own OpenID Connect support stays off: what names the subject is a switch.
    """

    def get_default_redirect_uri(self, *args: object, **kwargs: object) -> None:
        """Know none: a request names its redirect address, also where only one is registered."""

    def client_authentication_required(self, *args: object, **kwargs: object) -> bool:
        """Require it always: no client is public."""
        return True

    def authenticate_client(
        self,
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> bool:
        """Accept ``client_id`` and ``client_secret`` in the body.

        A client that also sends Basic credentials is refused, whether or not they agree (RFC 6749,
        section 2.3).
        """
        sent = (request.client_id or "", request.client_secret or "")
        client = clients.known(*sent)
        header = request.headers.get("HTTP_AUTHORIZATION", "")
        if not clients.is_basic(header):
            request.client = client
            return client is not None
        if client and clients.basic_credentials(header) == sent:
            raise InvalidRequestError(
                "Send the client's credentials once.",
                request=request,
            )
        return False

    def confirm_redirect_uri(self, *args: Any, **kwargs: Any) -> bool:
        """Refuse another address than the authorization's as a bad grant."""
        if not super().confirm_redirect_uri(*args, **kwargs):
            raise InvalidGrantError("redirect_uri is another one.")
        return True

    def validate_code(
        self,
        client_id: str,
        code: str,
        client: Client,
        request: Request,
        *args: Any,
        **kwargs: Any,
    ) -> bool:
        """Refuse a spent code, and end the tokens that it brought (RFC 6749, section 4.1.2)."""
        if super().validate_code(client_id, code, client, request):
            return True
        brought = RefreshToken.objects.filter(
            code_digest=_digest(code),
            application=client,
        )
        families = brought.values("token_family")
        for token in RefreshToken.objects.filter(token_family__in=families):
            token.revoke()
        return False

    def validate_refresh_token(
        self,
        refresh_token: str,
        client: Client,
        request: Request,
        *args: Any,
        **kwargs: Any,
    ) -> bool:
        """Refuse an expired token; the toolkit sees to reuse, which revokes the family."""
        if not super().validate_refresh_token(
            refresh_token,
            client,
            request,
            *args,
            **kwargs,
        ):
            return False
        return not request.refresh_token_instance.is_expired()

    def get_original_scopes(
        self,
        refresh_token: str,
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> str:
        """Return what the person allowed, whatever the newest access token has."""
        scope: str = request.refresh_token_instance.scope
        return scope

    def save_bearer_token(
        self,
        token: dict[str, Any],
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Store the tokens and the code's digest; name the subject if the switch says so."""
        columns = {"scope": token["scope"]}
        if request.code:
            columns["code_digest"] = _digest(request.code)
        else:
            # The toolkit takes it away when it stores the tokens.
            columns["scope"] = request.refresh_token_instance.scope
        super().save_bearer_token(token, request, *args, **kwargs)
        stored = RefreshToken.objects.filter(
            token_checksum=_digest(token["refresh_token"]),
        )
        stored.update(**columns)
        token.update(_named_subject(request.user, request.client))


def new_access_token(request: Request, *_unused: object) -> str:
    """Make an access token: opaque, or a JWT (RFC 9068) if the switch says so."""
    switched = switches.current()
    if switched.token_subject != "jwt_access_token":
        return secrets.token_urlsafe(32)
    client_id = request.client.client_id
    audiences = {"client": client_id, "origin": settings.SANDBOX_ORIGIN}
    members = {
        "sub": request.user.subject,
        "aud": audiences[switched.access_token_aud],
        "client_id": client_id,
        "jti": secrets.token_urlsafe(16),
    }
    return keys.sign_jwt("at+jwt", members)


def presented(request: HttpRequest) -> Grant | RefreshToken | None:
    """Return the code or the refresh token of a token request."""
    digest = _digest(request.POST.get("refresh_token", ""))
    grants = Grant.objects.filter(code=request.POST.get("code", ""))
    tokens = RefreshToken.objects.filter(token_checksum=digest)
    return (
        grants.select_related("application", "user").first()
        or tokens.select_related("application", "user").first()
    )


def _digest(secret: str) -> str:
    """Return what is stored in place of a code or a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _require_parameters(request: Request) -> dict[str, object]:
    """Refuse a request without ``state`` or ``scope``; what is missing goes to the application."""
    if not request.state:
        raise InvalidRequestError("state is missing.", request=request)
    if not request.scope:
        raise InvalidScopeError("scope is missing.", request=request)
    return {}


def _require_s256(request: Request) -> dict[str, object]:
    """Refuse a ``plain`` or malformed challenge (RFC 7636, section 4.3)."""
    if request.code_challenge_method != "S256":
        raise InvalidRequestError(
            "code_challenge_method must be S256.",
            request=request,
        )
    if not _S256_CHALLENGE.fullmatch(request.code_challenge):
        raise InvalidRequestError(
            "code_challenge must have 43 characters.",
            request=request,
        )
    return {}


def _require_token_parameters(request: Request) -> None:
    """Refuse an exchange without ``redirect_uri``, or with a verifier of a wrong shape."""
    if not request.redirect_uri:
        raise InvalidRequestError("redirect_uri is missing.", request=request)
    if not _CODE_VERIFIER.fullmatch(request.code_verifier or ""):
        raise InvalidRequestError(
            "code_verifier must have 43 to 128 characters.",
            request=request,
        )


def _named_subject(user: User, client: Client) -> dict[str, str]:
    """Return the member of the token answer that names the subject, if one is switched on."""
    switched = switches.current()
    if switched.token_subject in {"user_id", "sub"}:
        return {switched.token_subject: user.subject}
    if switched.token_subject == "id_token":
        audiences = {"text": client.client_id, "list": [client.client_id]}
        members = {"sub": user.subject, "aud": audiences[switched.id_token_aud]}
        return {"id_token": keys.sign_jwt("JWT", members)}
    return {}
