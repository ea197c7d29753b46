"""GET /users/:userId/profile, /kyc and /claims."""

from typing import Any

from django.http import HttpRequest, HttpResponse
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
from django_identity.sandbox.envelope import Refused
from django_identity.sandbox.models import AccessToken, Claim, Client, User


def reading(request: HttpRequest, user_id: str, scope: str) -> AccessToken:
    """Return the Bearer token that reads what ``scope`` names about the person ``user_id``.

    Raises:
        Refused: it is no valid token, lacks the scope, or belongs to somebody else.
    """
    valid, bearer = get_oauthlib_core().verify_request(request, scopes=[])
    if not valid:
        raise _unauthorized(request)
    token: AccessToken = bearer.access_token
    request_log.note(request, token.user, token.application)
    if not token.allow_scopes([scope]):
        raise _insufficient_scope(scope)
    _require_own(token.user, token.application, user_id)
    return token


@envelope.endpoint("GET")
def profile(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return who the person is."""
    token = reading(request, user_id, "profile:read")
    return envelope.success(shared.profile(token.user, token.scope.split()))


@envelope.endpoint("GET")
def kyc(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return whether, when and by whom the person was verified."""
    user = reading(request, user_id, "kyc:read").user
    return envelope.success(shared.kyc(user, "kyc:read"))


@envelope.endpoint("GET")
def claims_list(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return the claims, and the credential that proves the active ones."""
    token = reading(request, user_id, "claims:read")
    user = token.user
    audience = token.application.client_id
    credential = credentials.issue(user, claims.active(user), audience=audience)
    credentials.last[user.subject] = credential
    return envelope.success(
        {
            "user_id": user.subject,
            "claims": [_claim_element(claim) for claim in claims.listed(user)],
            "credential": credential,
            "credential_format": credentials.CREDENTIAL_FORMAT,
        },
    )


def _claim_element(claim: Claim) -> dict[str, Any]:
    """Return a claim with the fields of both variants, as far as the switches leave them in."""
    switched = switches.current()
    element: dict[str, Any] = {
        "claim_type": claim.claim_type,
        "provider": claim.provider,
    }
    if switched.claims_revoked:
        element["revoked"] = claim.revoked
    if switched.optional_members:
        element["proof_hash"] = claim.proof_hash
        element["expires_at"] = clock.timestamp_if_any(claim.expires_at)
    return element


def _unauthorized(request: HttpRequest) -> Refused:
    """Build the answer to a request without a valid token (RFC 6750, section 3)."""
    message = "Send a Bearer access token."
    challenge = 'Bearer realm="api"'
    if "Authorization" in request.headers:
        message = "The access token is unknown, expired or revoked."
        challenge += ', error="invalid_token"'
    return Refused(401, envelope.UNAUTHORIZED, message, challenge=challenge)


def _insufficient_scope(scope: str) -> Refused:
    """Build the answer to a token that was not granted ``scope`` (RFC 6750, section 3.1)."""
    challenge = f'Bearer realm="api", error="insufficient_scope", scope="{scope}"'
    message = f"The access token lacks the scope {scope}."
    return Refused(403, envelope.INSUFFICIENT_SCOPE, message, challenge=challenge)


def _require_own(user: User, client: Client, user_id: str) -> None:
    """Refuse any person but the token's own, whether or not that person exists."""
    if user.environment != client.environment:
        raise envelope.environment_mismatch()
    if user_id == user.subject or (user_id == "me" and switches.current().users_me):
        return
    other = User.objects.filter(subject=user_id).first()
    if other is not None and other.environment != client.environment:
        raise envelope.environment_mismatch()
    raise Refused(
        403,
        envelope.USER_MISMATCH,
        "The access token belongs to another user.",
    )
