"""Control of Connect: codes without a browser, proof of address, what people were told."""

from typing import Any

from django_identity.sandbox.connect import codes
from django_identity.sandbox.consents import mail, notices
from django_identity.sandbox.control.body import Body
from django_identity.sandbox.control.users import user_of
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import ConnectCode
from django_identity.sandbox.users import verification


def make_code(body: Body) -> dict[str, Any]:
    """POST connect-codes: what the account page does after asking for the password."""
    return _shown(codes.make(user_of(body.text("user_id"))))


def list_codes(body: Body, user_id: str) -> list[dict[str, Any]]:
    """GET users/<user_id>/connect-codes: the codes and where they stand, the newest first."""
    return [_shown(code) for code in codes.listed(user_of(user_id))]


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


def _shown(code: ConnectCode) -> dict[str, Any]:
    return {
        "code": code.code,
        "state": codes.state(code),
        "created_at": clock.timestamp(code.created_at),
        "expires_at": clock.timestamp(code.expires_at),
        "used_by": code.used_by.client_id if code.used_by else None,
        "refusal": code.refusal or None,
    }
