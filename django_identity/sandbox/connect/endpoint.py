"""POST /connect/request: redeem a Connect code."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox.connect import redemption
from django_identity.sandbox.connect.policy import Requirement
from django_identity.sandbox.connect.redemption import InvalidCode, Redemption
from django_identity.sandbox.instruments import switches
from django_identity.sandbox.instruments.switches import MissingConnectCode
from django_identity.sandbox.oauth import clients
from django_identity.sandbox.oauth.clients import AuthenticatedClient
from django_identity.sandbox.server import envelope, json_body

CONNECT_CODE_REQUIRED = "CONNECT_CODE_REQUIRED"
RETIRED_MEMBER = "infra_user_id"
LONGEST_CALLBACK_URL = 2000

_POLICY_MESSAGES = {
    Requirement.KYC_LEVEL: "The user's KYC level is below what this application requires.",
    Requirement.PROOF_OF_ADDRESS: "This application requires proof of address.",
}


class UnusableRequest(ValueError):
    """The request is invalid. No code was checked."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@csrf_exempt
def connect_request(request: HttpRequest) -> HttpResponse:
    """Redeem a Connect code for an application."""
    if request.method != "POST":
        return envelope.method_not_allowed("POST")
    asking = clients.authenticate(request)
    if asking is None:
        refusal = _refuse(401, envelope.UNAUTHORIZED, "The client id or secret is wrong.")
        refusal["WWW-Authenticate"] = clients.CHALLENGE
        return refusal
    try:
        return envelope.success(redemption.redeem(_read(request, asking)))
    except UnusableRequest as error:
        return _refuse(400, error.code, error.message)
    except InvalidCode as error:
        return _refuse(400, error.code, "The code is unknown, used or expired.")
    except redemption.UnknownScope as error:
        return _refuse(400, error.code, f"The scopes are {', '.join(redemption.SCOPES)}.")
    except redemption.OtherEnvironment as error:
        return _refuse(403, error.code, envelope.MISMATCH_MESSAGE)
    except redemption.PolicyNotMet as error:
        return _refuse_policy(error.requirement)


def _read(request: HttpRequest, asking: AuthenticatedClient) -> Redemption:
    """Parse the body. Raises ``UnusableRequest`` at the first invalid member."""
    members = json_body.members_of(request)
    if members is None:
        raise UnusableRequest(envelope.INVALID_REQUEST, "The body is not a JSON object.")
    code, scopes = members.get("connect_code"), members.get("scopes")
    if code in (None, ""):
        raise _missing_code(members)
    if not isinstance(code, str):
        raise UnusableRequest(InvalidCode.code, "connect_code must be a string.")
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise UnusableRequest(envelope.INVALID_REQUEST, "scopes must be an array of strings.")
    if not scopes:
        raise UnusableRequest(envelope.INVALID_REQUEST, "scopes must not be empty.")
    if not _is_address(members.get("callback_url")):
        raise UnusableRequest(envelope.INVALID_REQUEST, "callback_url must be an http(s) address.")
    return Redemption(asking, code, tuple(dict.fromkeys(scopes)))


def _missing_code(members: Mapping[str, Any]) -> UnusableRequest:
    """Return the error for a request without a code, which may have the retired form."""
    always = switches.current().missing_connect_code is MissingConnectCode.REQUIRED
    if always or RETIRED_MEMBER in members:
        return UnusableRequest(
            CONNECT_CODE_REQUIRED, "Ask the user for a Connect code and send it as connect_code."
        )
    return UnusableRequest(InvalidCode.code, "connect_code is missing.")


def _is_address(callback_url: object) -> bool:
    """Return whether ``callback_url`` is absent or an absolute address."""
    if callback_url is None:
        return True
    if not isinstance(callback_url, str) or len(callback_url) > LONGEST_CALLBACK_URL:
        return False
    try:
        parts = urlsplit(callback_url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _refuse_policy(requirement: Requirement) -> HttpResponse:
    """Refuse, with the address where the person meets the requirement (spec: Errors)."""
    kyc_url = settings.SANDBOX_ORIGIN + reverse("verify")
    message = _POLICY_MESSAGES[requirement]
    return _refuse(403, requirement, message, kyc_required=True, kyc_url=kyc_url)


def _refuse(status: int, code: str, message: str, **beside: object) -> HttpResponse:
    """Build an error answer, with a message unless the switch turns messages off."""
    shown = message if switches.current().connect_messages else ""
    return envelope.error(status, code, shown, **beside)
