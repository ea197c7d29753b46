"""Control of people: what the account and verification pages do."""

from typing import Any

from django.db import IntegrityError, transaction
from oauth2_provider.scopes import get_scopes_backend

from django_identity.sandbox.claims import claims
from django_identity.sandbox.connect import redemption
from django_identity.sandbox.consents import consents
from django_identity.sandbox.control.body import Body, InvalidRequest, UnknownObject, find
from django_identity.sandbox.models import (
    CREDENTIAL_LIFETIME_SECONDS,
    Claim,
    Client,
    Environment,
    User,
)
from django_identity.sandbox.users import accounts, deletion, verification


def create_user(body: Body) -> dict[str, Any]:
    """POST users: create an account and show its password this once."""
    environment = body.text("environment", Environment.TEST)
    if environment not in Environment.values:
        raise InvalidRequest("environment must be live or test.")
    try:
        with transaction.atomic():
            created = accounts.create_user(
                environment=Environment(environment),
                email=body.text("email"),
                password=body.text("password"),
                first_name=body.text("first_name"),
                last_name=body.text("last_name"),
                country=body.text("country"),
                date_of_birth=body.day("date_of_birth", "1990-01-01"),
                subject=body.text("subject"),
                credential_seconds=int(
                    body.number("credential_seconds", CREDENTIAL_LIFETIME_SECONDS)
                ),
            )
    except IntegrityError as error:
        raise InvalidRequest("The e-mail address or the subject is taken.") from error
    if body.flag("verified"):
        verification.verify(created.user, verification.BVN_VERIFIED)
    if body.flag("proof_of_address"):
        verification.prove_address(created.user)
    return show_user(body, created.user.subject) | {"password": created.password}


def show_user(body: Body, user_id: str) -> dict[str, Any]:
    """GET users/<user_id>: show an account as the service sees it."""
    user = user_of(user_id)
    return {
        "user_id": user.subject,
        "environment": user.environment,
        "email": user.email,
        "kyc_level": user.kyc_level,
        "kyc_status": user.kyc_status,
        "proof_of_address": user.address_proved_at is not None,
        "deletion_requested": not user.is_active,
        "claims": {claim.claim_type: _claim(claim) for claim in claims.listed(user)},
        "consents": {each.client.client_id: each.scopes for each in consents.granted(user)},
    }


def verify_user(body: Body, user_id: str) -> dict[str, Any]:
    """POST users/<user_id>/verify: what the verification page does."""
    user = user_of(user_id)
    try:
        outcome = verification.verify(user, body.text("bvn"))
    except verification.InvalidBvn as error:
        raise InvalidRequest(str(error)) from error
    return {"outcome": outcome, "kyc_status": user.kyc_status, "kyc_level": user.kyc_level}


def revoke_claim(body: Body, user_id: str, claim_type: str) -> dict[str, Any]:
    """POST users/<user_id>/claims/<claim_type>/revoke: what the account page does."""
    if not claims.revoke(user_of(user_id), claim_type):
        raise UnknownObject("The person has no such active claim.")
    return {"claim_type": claim_type, "revoked": True}


def change_claim(body: Body, user_id: str, claim_type: str) -> dict[str, Any]:
    """POST users/<user_id>/claims/<claim_type>: give a claim another value or expiry."""
    claim = Claim.objects.filter(user=user_of(user_id), claim_type=claim_type).first()
    if claim is None:
        raise UnknownObject("The person has no such claim.")
    if "value" in body.members:
        claim.value = body.members["value"]
    if "expires_at" in body.members:
        claim.expires_at = body.moment("expires_at") if body.members["expires_at"] else None
    claim.save()
    return {"claim_type": claim_type} | _claim(claim)


def issue_claim(body: Body, user_id: str, claim_type: str) -> dict[str, Any]:
    """POST users/<user_id>/claims/<claim_type>/issue: what the account page does."""
    try:
        claim = claims.issue(user_of(user_id), claim_type)
    except claims.NotProven as error:
        raise InvalidRequest(str(error)) from error
    return {"claim_type": claim_type} | _claim(claim)


def invalidate_verification(body: Body, user_id: str) -> dict[str, Any]:
    """POST users/<user_id>/invalidate: the vendor takes the verification back."""
    user = user_of(user_id)
    verification.invalidate(user)
    return {"kyc_status": user.kyc_status, "kyc_level": user.kyc_level}


def request_deletion(body: Body, user_id: str) -> dict[str, Any]:
    """POST users/<user_id>/deletion: what the account page does."""
    deletion.request(user_of(user_id))
    return show_user(body, user_id)


def grant_consent(body: Body, user_id: str, client_id: str) -> dict[str, Any]:
    """POST users/<user_id>/consents/<client_id>/grant: record an approval, with no screen."""
    user, client = user_of(user_id), find(Client.objects.filter(client_id=client_id), "client_id")
    if client.environment != user.environment:
        raise InvalidRequest("The person and the application are of different environments.")
    scopes = body.texts("scopes") or ["profile:read"]
    served = get_scopes_backend().get_available_scopes(application=client)
    unserved = [scope for scope in scopes if scope not in {*served, *redemption.SCOPES}]
    if unserved:
        raise InvalidRequest(f"Nothing serves {', '.join(unserved)} to this application.")
    consent = consents.grant(user, client, scopes)
    return {"client_id": client_id, "scopes": consent.scopes}


def revoke_consent(body: Body, user_id: str, client_id: str) -> dict[str, Any]:
    """POST users/<user_id>/consents/<client_id>/revoke: what the account page does."""
    if not consents.revoke(user_of(user_id), client_id):
        raise UnknownObject("The person has given that application no consent.")
    return {"client_id": client_id, "revoked": True}


def user_of(user_id: str) -> User:
    """Return the person; raises ``UnknownObject`` if there is none."""
    return find(User.objects.filter(subject=user_id), "user")


def _claim(claim: Claim) -> dict[str, Any]:
    expires_at = claim.expires_at.isoformat() if claim.expires_at else None
    return {"value": claim.value, "revoked": claim.revoked, "expires_at": expires_at}
