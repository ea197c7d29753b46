"""GET /users/:userId/profile, /kyc and /claims."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.oauth2_backends import get_oauthlib_core

from django_identity.sandbox import (
    claims,
    clock,
    credentials,
    envelope,
    request_log,
    shared,
    switches,
)
from django_identity.sandbox.models import Claim, Client, KycStatus, User

UserEndpoint = Callable[[User, Client, list[str]], HttpResponse]


def user_endpoint(scope: str) -> Callable[[UserEndpoint], Callable[..., HttpResponse]]:
    """Guard an endpoint: GET, a valid Bearer token, the ``scope``, and the token's own person."""

    def decorate(endpoint: UserEndpoint) -> Callable[..., HttpResponse]:
        @csrf_exempt
        @wraps(endpoint)
        def view(request: HttpRequest, user_id: str) -> HttpResponse:
            if request.method != "GET":
                return envelope.method_not_allowed("GET")
            valid, bearer = get_oauthlib_core().verify_request(request, scopes=[])
            if not valid:
                return _unauthorized(request)
            user, client = bearer.user, bearer.client
            request_log.note(request, user, client)
            if scope not in bearer.scopes:
                return _insufficient_scope(scope)
            return _refuse_other_user(user, client, user_id) or endpoint(
                user, client, list(bearer.scopes)
            )

        return view

    return decorate


@user_endpoint("profile:read")
def profile(user: User, client: Client, scopes: list[str]) -> HttpResponse:
    """Return who the person is."""
    return envelope.success(shared.profile(user, scopes))


@user_endpoint("kyc:read")
def kyc(user: User, client: Client, scopes: list[str]) -> HttpResponse:
    """Return whether, when and by whom the person was verified."""
    return _unverified(user) or envelope.success(shared.kyc(user, "kyc:read"))


@user_endpoint("claims:read")
def claims_list(user: User, client: Client, scopes: list[str]) -> HttpResponse:
    """Return the claims, and the credential that proves the active ones."""
    return _unverified(user) or envelope.success(
        {
            "user_id": user.subject,
            "claims": [_claim_element(claim) for claim in claims.listed(user)],
            "credential": credentials.issue(user, claims.active(user), audience=client.client_id),
            "credential_format": credentials.CREDENTIAL_FORMAT,
        }
    )


def _claim_element(claim: Claim) -> dict[str, Any]:
    """Return a claim with the fields of the basic and, if sent, of the credential variant."""
    element = {name: getattr(claim, name) for name in ("claim_type", "provider", "revoked")}
    expires_at = clock.timestamp(claim.expires_at) if claim.expires_at else None
    variant = {"proof_hash": claim.proof_hash, "expires_at": expires_at}
    return element | (variant if switches.current().optional_members else {})


def _unverified(user: User) -> HttpResponse | None:
    """Refuse what only a verification brings, if the switch says so."""
    if switches.current().unverified == "404" and user.kyc_status == KycStatus.UNVERIFIED:
        return envelope.error(404, envelope.NOT_FOUND, "The person has not been verified.")
    return None


def _unauthorized(request: HttpRequest) -> HttpResponse:
    """Answer a request without a valid token (RFC 6750, section 3)."""
    message, challenge = "Send a Bearer access token.", 'Bearer realm="api"'
    if "Authorization" in request.headers:
        message = "The access token is unknown, expired or revoked."
        challenge += ', error="invalid_token"'
    return envelope.error(401, envelope.UNAUTHORIZED, message, challenge=challenge)


def _insufficient_scope(scope: str) -> HttpResponse:
    """Answer a token that was not granted ``scope`` (RFC 6750, section 3.1)."""
    challenge = f'Bearer realm="api", error="insufficient_scope", scope="{scope}"'
    message = f"The access token lacks the scope {scope}."
    return envelope.error(403, envelope.INSUFFICIENT_SCOPE, message, challenge=challenge)


def _refuse_other_user(user: User, client: Client, user_id: str) -> HttpResponse | None:
    """Refuse any person but the token's own, whether or not that person exists."""
    if user.environment != client.environment:
        return envelope.environment_mismatch()
    if user_id == user.subject or (user_id == "me" and switches.current().users_me):
        return None
    other = User.objects.filter(subject=user_id).first()
    if other is not None and other.environment != client.environment:
        return envelope.environment_mismatch()
    return envelope.error(403, envelope.USER_MISMATCH, "The access token belongs to another user.")
