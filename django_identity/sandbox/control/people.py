"""Applications, people and what people allow, as the control API changes them."""

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.test import RequestFactory
from django.urls import reverse
from oauth2_provider.scopes import get_scopes_backend

from django_identity.sandbox import claims, clock, connect, consents
from django_identity.sandbox.control.door import (
    ABSENT,
    JSON,
    NO_MEMBERS,
    Members,
    client_of,
    control,
    moment_of,
    user_of,
)
from django_identity.sandbox.developer import applications
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import (
    Application,
    Claim,
    Client,
    ConnectCode,
    Environment,
    KycLevel,
)
from django_identity.sandbox.oauth.endpoints import AuthorizationPage
from django_identity.sandbox.people import accounts, verification

NO_TEXTS: list[str] = []
PROFILE = ["profile:read"]


@control("POST", "applications")
def register_application(
    *,
    redirect_uris: list[str],
    name: str = "Example shop",
    client_secrets: Members = NO_MEMBERS,
) -> JSON:
    """Register one and show its secrets this once."""
    if not redirect_uris or any(len(uri.split()) != 1 for uri in redirect_uris):
        raise Invalid("redirect_uris needs at least one address, without spaces.")
    for mode, secret in client_secrets.items():
        if mode not in Environment.values or not isinstance(secret, str):
            raise Invalid("client_secrets has strings for test and live.")
    application, issued = applications.register(name, redirect_uris, client_secrets)
    secrets = {
        mode: {"client_id": client_id, "client_secret": client_secret}
        for mode, (client_id, client_secret) in issued.items()
    }
    return show_application(application.app_id) | secrets


@control("GET", "applications")
def list_applications() -> JSON:
    """List them without secrets."""
    return [
        show_application(application.app_id)
        for application in Application.objects.all()
    ]


@control("GET", "applications/<uuid:app_id>")
def show_application(app_id: UUID) -> Members:
    """Show one without secrets."""
    shown = Application.objects.get(app_id=app_id)
    return {
        "app_id": str(shown.app_id),
        "name": shown.name,
        "clients": dict(shown.client_set.values_list("environment", "client_id")),
        "kyc_level": shown.connect_kyc_level,
        "proof_of_address": shown.connect_proof_of_address,
        "trusted": shown.document_key is not None,
        "document_key": shown.document_key,
    }


@control("POST", "applications/<uuid:app_id>/connect-policy")
def change_policy(
    app_id: UUID,
    *,
    kyc_level: KycLevel = ABSENT,
    proof_of_address: bool = ABSENT,
) -> JSON:
    """Require something else of people with a Connect code; what is left out stays."""
    sent = {
        "connect_kyc_level": kyc_level,
        "connect_proof_of_address": proof_of_address,
    }
    changed = {name: value for name, value in sent.items() if value is not ABSENT}
    Application.objects.filter(app_id=app_id).update(**changed)
    return show_application(app_id)


@control("POST", "applications/<uuid:app_id>/trusted-tier")
def approve_as_trusted(app_id: UUID, *, document_key: Members) -> JSON:
    """Approve it with its public ``document_key``."""
    applications.change_document_key(
        Application.objects.get(app_id=app_id),
        document_key,
    )
    return show_application(app_id)


@control("DELETE", "applications/<uuid:app_id>/trusted-tier")
def end_trusted_tier(app_id: UUID) -> JSON:
    """Go back to the standard tier."""
    applications.change_document_key(Application.objects.get(app_id=app_id), None)
    return show_application(app_id)


@control("POST", "applications/<uuid:app_id>/webhook")
def set_webhook(
    app_id: UUID,
    *,
    mode: Environment = Environment.TEST,
    url: str = "",
    secret: str = "",
) -> JSON:
    """Say where events go, and the secret that signs them. An empty ``url`` ends the sending.

    Without ``secret`` the present one stays; the first is made up.
    """
    client = Client.objects.get(registered__app_id=app_id, environment=mode)
    applications.register_webhook(client, url, secret=secret)
    return {"mode": mode, "url": client.webhook_url, "secret": client.webhook_secret}


@control("POST", "authorizations")
def decide(
    *,
    url: str,
    user_id: str,
    deny: bool = False,
    decline: list[str] = NO_TEXTS,
) -> JSON:
    """Sign ``user_id`` in at the address ``url``, and approve or deny; return the callback address.

    ``decline``: scopes of documents that the person leaves out of an approval. What the consent
    screen would refuse on a page of its own is refused here.
    """
    address = urlsplit(url).path
    user = user_of(user_id)
    if address != reverse("authorize"):
        raise Invalid(f"url: {address} is not the authorization endpoint.")
    if not user.is_active:
        raise Invalid(
            "user_id: the account is closed, as its person asked for deletion.",
        )
    button = "deny" if deny else "allow"
    request = RequestFactory().post(url, {button: "1", "decline": decline})
    request.user = user
    answer = AuthorizationPage.as_view()(request)
    if answer.status_code != 302:
        raise Invalid(
            "url: the person would see an error page; open it in a browser to read it.",
        )
    return {"callback": answer["Location"]}


@control("POST", "users", accounts.Account)
def create_user(
    *,
    verified: bool = False,
    proof_of_address: bool = False,
    **account: Any,
) -> JSON:
    """Create an account and show its password this once."""
    try:
        with transaction.atomic():
            user, password = accounts.create_user(accounts.Account(**account))
    except IntegrityError as error:
        raise Invalid("email or subject is taken.") from error
    if verified:
        verification.verify(user, verification.BVN_VERIFIED)
    if proof_of_address:
        verification.prove_address(user)
    return {**show_user(user.subject), "password": password}


@control("GET", "users/<path:user_id>")
def show_user(user_id: str) -> Members:
    """Show an account as the service sees it; codes and notices newest first."""
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
        "consents": {
            granted.client.client_id: granted.scopes
            for granted in consents.granted(user)
        },
        "connect_codes": [_code(code) for code in user.connectcode_set.all()],
        "notices": [notice.scopes for notice in user.notice_set.all()],
        "emails": [email for email in consents.emails if email["to"] == [user.email]],
    }


def _claim(claim: Claim) -> Members:
    return {
        "value": claim.value,
        "revoked": claim.revoked,
        "expires_at": claim.expires_at,
    }


def _code(code: ConnectCode) -> Members:
    return {
        "code": code.code,
        "state": code.state,
        "expires_at": clock.timestamp(code.expires_at),
        "used_by": getattr(code.used_by, "client_id", None),
        "refusal": code.refusal or None,
    }


@control("POST", "users/<path:user_id>/verify")
def verify_user(user_id: str, *, bvn: str) -> JSON:
    """Do what the verification page does."""
    user = user_of(user_id)
    outcome = verification.verify(user, bvn)
    return {
        "outcome": outcome,
        "kyc_status": user.kyc_status,
        "kyc_level": user.kyc_level,
    }


@control("POST", "users/<path:user_id>/invalidate")
def invalidate_verification(user_id: str) -> JSON:
    """Let the vendor take the verification back."""
    verification.invalidate(user_of(user_id))
    return show_user(user_id)


@control("POST", "users/<path:user_id>/proof-of-address")
def prove_address(user_id: str, *, proved: bool = True) -> JSON:
    """Do what the verification page does; or take it back."""
    verification.prove_address(user_of(user_id), proved=proved)
    return show_user(user_id)


@control("POST", "users/<path:user_id>/deletion")
def request_deletion(user_id: str) -> JSON:
    """Do what the account page does."""
    consents.request_deletion(user_of(user_id))
    return show_user(user_id)


@control("POST", "users/<path:user_id>/claims/<str:claim_type>/revoke")
def revoke_claim(user_id: str, claim_type: str) -> JSON:
    """Do what the account page does."""
    if not claims.revoke(user_of(user_id), claim_type):
        raise ObjectDoesNotExist("The person has no such active claim.")
    return {"claim_type": claim_type, "revoked": True}


@control("POST", "users/<path:user_id>/claims/<str:claim_type>/issue")
def issue_claim(user_id: str, claim_type: str) -> JSON:
    """Do what the account page does."""
    return {"claim_type": claim_type} | _claim(
        claims.issue(user_of(user_id), claim_type),
    )


@control("POST", "users/<path:user_id>/claims/<str:claim_type>")
def change_claim(
    user_id: str,
    claim_type: str,
    *,
    value: Any = ABSENT,
    expires_at: Any = ABSENT,
) -> JSON:
    """Give a claim another value or expiry."""
    claim = Claim.objects.get(user=user_of(user_id), claim_type=claim_type)
    if value is not ABSENT:
        claim.value = value
    if expires_at is not ABSENT:
        claim.expires_at = None
        if expires_at:
            claim.expires_at = moment_of("expires_at", expires_at, datetime)
    claim.save()
    return {"claim_type": claim_type} | _claim(claim)


@control("POST", "users/<path:user_id>/consents/<str:client_id>/grant")
def grant_consent(user_id: str, client_id: str, *, scopes: list[str] = PROFILE) -> JSON:
    """Record an approval, with no screen."""
    user = user_of(user_id)
    client = client_of(client_id)
    if client.environment != user.environment:
        raise Invalid("The person and the application are of different environments.")
    served = get_scopes_backend().get_available_scopes(application=client)
    unserved = [scope for scope in scopes if scope not in {*served, *connect.SCOPES}]
    if unserved:
        raise Invalid(
            f"scopes: nothing serves {', '.join(unserved)} to this application.",
        )
    return {
        "client_id": client_id,
        "scopes": consents.grant(user, client, scopes).scopes,
    }


@control("POST", "users/<path:user_id>/consents/<str:client_id>/revoke")
def revoke_consent(user_id: str, client_id: str) -> JSON:
    """Do what the account page does."""
    if not consents.revoke(user_of(user_id), client_id):
        raise ObjectDoesNotExist("The person has given that application no consent.")
    return {"client_id": client_id, "revoked": True}


@control("POST", "connect-codes")
def make_code(*, user_id: str) -> JSON:
    """Do what the account page does after asking for the password."""
    return _code(connect.make_code(user_of(user_id)))
