"""Control of Connect: codes without a browser, what applications require, what people were told."""

from typing import Any
from uuid import UUID

from django_identity.sandbox import (
    clock,
    connect_codes,
    connect_policy,
    mail,
    notices,
    verification,
)
from django_identity.sandbox.control.registrations import user_of
from django_identity.sandbox.control.requests import Body, InvalidRequest, UnknownObject
from django_identity.sandbox.models import Application, ConnectCode, KycLevel


def make_code(body: Body) -> dict[str, Any]:
    """POST connect-codes: what the account page does after asking for the password."""
    return _shown(connect_codes.make(user_of(body.text("user_id"))))


def list_codes(body: Body, user_id: str) -> list[dict[str, Any]]:
    """GET users/<user_id>/connect-codes: the codes and where they stand, the newest first."""
    return [_shown(code) for code in connect_codes.listed(user_of(user_id))]


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
    changed = connect_policy.change(
        application, kyc_level=KycLevel(kyc_level), proof_of_address=proof_of_address
    )
    return _policy(changed)


def prove_address(body: Body, user_id: str) -> dict[str, Any]:
    """POST users/<user_id>/proof-of-address: what the verification page does; or take it back."""
    user = user_of(user_id)
    proved = body.flag("proved") if "proved" in body.members else True
    verification.prove_address(user, proved=proved)
    return {"user_id": user.subject, "proof_of_address": proved}


def list_notices(body: Body, user_id: str) -> list[dict[str, Any]]:
    """GET users/<user_id>/notices: what the account page tells, the newest first."""
    return [
        {
            "application": notice.client.name,
            "client_id": notice.client.client_id,
            "scopes": notice.scopes,
            "created_at": clock.timestamp(notice.created_at),
        }
        for notice in notices.listed(user_of(user_id))
    ]


def list_emails(body: Body) -> list[dict[str, Any]]:
    """GET emails: what was sent, the oldest first."""
    return mail.sent()


def forget_emails(body: Body) -> list[dict[str, Any]]:
    """DELETE emails: empty the list."""
    mail.forget()
    return mail.sent()


def _application(app_id: UUID) -> Application:
    application = Application.objects.filter(app_id=app_id).first()
    if application is None:
        raise UnknownObject("There is no such application.")
    return application


def _policy(application: Application) -> dict[str, Any]:
    return {
        "kyc_level": application.connect_kyc_level,
        "proof_of_address": application.connect_proof_of_address,
    }


def _shown(code: ConnectCode) -> dict[str, Any]:
    return {
        "code": code.code,
        "state": connect_codes.state(code),
        "created_at": clock.timestamp(code.created_at),
        "expires_at": clock.timestamp(code.expires_at),
        "used_by": code.used_by.client_id if code.used_by else None,
        "refusal": code.refusal or None,
    }
