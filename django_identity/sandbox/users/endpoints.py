"""GET /users/:userId/profile, /kyc and /claims."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.oauth2_backends import get_oauthlib_core

from django_identity.sandbox.claims import claims, credentials
from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.models import Claim, Client, User
from django_identity.sandbox.server import envelope
from django_identity.sandbox.users import verification

UserEndpoint = Callable[[User, Client], HttpResponse]


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
            if scope not in bearer.scopes:
                return _insufficient_scope(scope)
            return _refuse_other_user(bearer.user, bearer.client, user_id) or endpoint(
                bearer.user, bearer.client
            )

        return view

    return decorate


@user_endpoint("profile:read")
def profile(user: User, client: Client) -> HttpResponse:
    """Return who the person is."""
    return envelope.success(
        {
            "id": user.subject,
            "email": user.email,
            "first_name": user.first_name,
            "last_name": user.last_name,
            "country": user.country,
            "kyc_level": user.kyc_level,
            "risk_score": user.risk_score,
            "photo_url": user.photo_url or settings.SANDBOX_ORIGIN + static("sandbox/person.svg"),
        }
    )


@user_endpoint("kyc:read")
def kyc(user: User, client: Client) -> HttpResponse:
    """Return whether, when and by whom the person was verified."""
    named = {"user_id": user.subject} if switches.current().kyc_user_id else {}
    return envelope.success({**named, **verification.kyc_status(user)})


@user_endpoint("claims:read")
def claims_list(user: User, client: Client) -> HttpResponse:
    """Return the claims, and the credential that proves the active ones."""
    return envelope.success(
        {
            "user_id": user.subject,
            "claims": [_claim_element(claim) for claim in claims.listed(user)],
            "credential": credentials.issue(user, claims.active(user), audience=client.client_id),
            "credential_format": credentials.CREDENTIAL_FORMAT,
        }
    )


def _claim_element(claim: Claim) -> dict[str, Any]:
    """Return a claim with the fields of the basic and of the credential variant."""
    return {
        "claim_type": claim.claim_type,
        "provider": claim.provider,
        "revoked": claim.revoked,
        "proof_hash": claim.proof_hash,
        "expires_at": clock.timestamp(claim.expires_at) if claim.expires_at else None,
    }


def _unauthorized(request: HttpRequest) -> HttpResponse:
    """Answer a request without a valid token (RFC 6750, section 3)."""
    message, challenge = "Send a Bearer access token.", 'Bearer realm="api"'
    if "Authorization" in request.headers:
        message = "The access token is unknown, expired or revoked."
        challenge += ', error="invalid_token"'
    refusal = envelope.error(401, envelope.UNAUTHORIZED, message)
    refusal["WWW-Authenticate"] = challenge
    return refusal


def _insufficient_scope(scope: str) -> HttpResponse:
    """Answer a token that was not granted ``scope`` (RFC 6750, section 3.1)."""
    refusal = envelope.error(
        403, envelope.INSUFFICIENT_SCOPE, f"The access token lacks the scope {scope}."
    )
    refusal["WWW-Authenticate"] = f'Bearer realm="api", error="insufficient_scope", scope="{scope}"'
    return refusal


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
