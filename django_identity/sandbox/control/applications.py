"""Control of applications: what a developer does in the portal."""

from typing import Any
from uuid import UUID

from django_identity.sandbox.connect import policy
from django_identity.sandbox.control.body import Body, InvalidRequest, UnknownObject, find
from django_identity.sandbox.developer import applications
from django_identity.sandbox.developer.applications import NewClient
from django_identity.sandbox.documents.keys import InvalidDocumentKey
from django_identity.sandbox.events.addresses import InvalidAddress
from django_identity.sandbox.models import Application, Client, Environment, KycLevel


def register_application(body: Body) -> dict[str, Any]:
    """POST applications: register one and show its secrets this once."""
    redirect_uris = body.texts("redirect_uris")
    if not redirect_uris or any(not uri or len(uri.split()) != 1 for uri in redirect_uris):
        raise InvalidRequest("redirect_uris needs at least one address, without spaces.")
    client_secrets = body.members.get("client_secrets", {})
    if not isinstance(client_secrets, dict):
        raise InvalidRequest("client_secrets must be an object.")
    chosen = Body(client_secrets)
    created = applications.register_application(
        body.text("name", "Example shop"),
        redirect_uris,
        client_secrets={each: chosen.text(each) for each in Environment},
    )
    return {
        "app_id": str(created.application.app_id),
        "name": created.application.name,
        "test": _credentials(created.test),
        "live": _credentials(created.live),
    }


def list_applications(body: Body) -> list[dict[str, Any]]:
    """GET applications: list them without secrets."""
    return [
        {
            "app_id": str(application.app_id),
            "name": application.name,
            "clients": {
                each.environment: each.client_id
                for each in Client.objects.filter(registered=application)
            },
        }
        for application in Application.objects.all()
    ]


def change_redirect_uris(body: Body, app_id: UUID) -> dict[str, Any]:
    """POST applications/<app_id>: register other redirect addresses."""
    redirect_uris = body.texts("redirect_uris")
    clients = Client.objects.filter(registered__app_id=app_id)
    changed = applications.change_redirect_uris(clients, redirect_uris)
    if not changed:
        raise UnknownObject("There is no such application.")
    return {"app_id": str(app_id), "redirect_uris": redirect_uris}


def _credentials(client: NewClient) -> dict[str, str]:
    return {"client_id": client.client_id, "client_secret": client.client_secret}


def show_policy(body: Body, app_id: UUID) -> dict[str, Any]:
    """GET applications/<app_id>/connect-policy: what the application requires."""
    return _policy(_application(app_id))


def change_policy(body: Body, app_id: UUID) -> dict[str, Any]:
    """POST applications/<app_id>/connect-policy: require something else."""
    application = _application(app_id)
    present = _policy(application)
    kyc_level = body.text("kyc_level", present["kyc_level"])
    if kyc_level not in KycLevel.values:
        raise InvalidRequest(f"kyc_level is one of {', '.join(KycLevel.values)}.")
    proof_of_address = present["proof_of_address"]
    if "proof_of_address" in body.members:
        proof_of_address = body.flag("proof_of_address")
    changed = policy.change(
        application, kyc_level=KycLevel(kyc_level), proof_of_address=proof_of_address
    )
    return _policy(changed)


def show_tier(body: Body, app_id: UUID) -> dict[str, Any]:
    """GET applications/<app_id>/trusted-tier: whether it is approved, and the public key."""
    return _tier(_application(app_id))


def approve_as_trusted(body: Body, app_id: UUID) -> dict[str, Any]:
    """POST applications/<app_id>/trusted-tier: approve it with its public ``document_key``."""
    application = _application(app_id)
    try:
        applications.approve_as_trusted(application, body.members.get("document_key"))
    except InvalidDocumentKey as error:
        raise InvalidRequest(str(error)) from error
    return _tier(application)


def end_trusted_tier(body: Body, app_id: UUID) -> dict[str, Any]:
    """DELETE applications/<app_id>/trusted-tier: back to the standard tier."""
    application = _application(app_id)
    applications.end_trusted_tier(application)
    return _tier(application)


def _tier(application: Application) -> dict[str, Any]:
    return {"trusted": application.is_trusted, "document_key": application.document_key}


def _application(app_id: UUID) -> Application:
    return find(Application.objects.filter(app_id=app_id), "application")


def _policy(application: Application) -> dict[str, Any]:
    return {
        "kyc_level": application.connect_kyc_level,
        "proof_of_address": application.connect_proof_of_address,
    }


def set_webhook(body: Body, app_id: UUID) -> dict[str, Any]:
    """POST applications/<app_id>/webhook: where events go, and the secret that signs them.

    An empty ``url`` ends the sending. Without ``secret`` the present one stays; the first is made
    up.
    """
    mode = body.text("mode", Environment.TEST)
    client = Client.objects.filter(registered__app_id=app_id, environment=mode).first()
    if client is None:
        raise UnknownObject("There is no such application, or mode is neither live nor test.")
    try:
        applications.register_webhook(
            client, body.text("url"), is_local=body.is_local, secret=body.text("secret")
        )
    except InvalidAddress as error:
        raise InvalidRequest(str(error)) from error
    return {"mode": mode, "url": client.webhook_url, "secret": client.webhook_secret}
