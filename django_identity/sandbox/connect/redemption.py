"""Redeem a Connect code (spec: Connect redemption result; States; Errors)."""

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from django_identity.sandbox.connect import codes, policy
from django_identity.sandbox.connect.policy import Requirement
from django_identity.sandbox.consents import consents, notices
from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.instruments.switches import ConnectSignature
from django_identity.sandbox.keys import signing
from django_identity.sandbox.models import User
from django_identity.sandbox.oauth.clients import AuthenticatedClient
from django_identity.sandbox.server import envelope
from django_identity.sandbox.users import verification

PROFILE_BASIC = "profile:basic"
KYC_STATUS = "kyc:status"
SCOPES = (PROFILE_BASIC, KYC_STATUS)


class ConnectRefused(Exception):
    """The request is refused with the error code ``code``. No data is shared."""

    code: str


class InvalidCode(ConnectRefused):
    """There is no such valid code: it is unknown, used or expired."""

    code = "INVALID_CONNECT_CODE"


class UnknownScope(ConnectRefused):
    """Connect does not know a requested scope."""

    code = "INVALID_SCOPE"


class OtherEnvironment(ConnectRefused):
    """The code belongs to a person of the other environment."""

    code = envelope.ENVIRONMENT_MISMATCH


class PolicyNotMet(ConnectRefused):
    """The person does not meet the application's policy. The code is spent."""

    def __init__(self, requirement: Requirement) -> None:
        super().__init__(requirement)
        self.code = self.requirement = requirement


@dataclass(frozen=True, slots=True)
class Redemption:
    """A parsed Connect request: the client, the code, the scopes."""

    asking: AuthenticatedClient
    code: str
    scopes: Sequence[str]


def redeem(redemption: Redemption) -> dict[str, Any]:
    """Spend the code, return the requested data, and record and announce the consent.

    Returns:
        The Connect redemption result.

    Raises:
        ConnectRefused: no data was shared. A spent code stays spent.
    """
    with transaction.atomic():
        result = _spend_and_share(redemption)
        if isinstance(result, OtherEnvironment | UnknownScope):
            transaction.set_rollback(not switches.current().connect_refusals_spend)
    if isinstance(result, ConnectRefused):
        raise result
    return result


def _spend_and_share(redemption: Redemption) -> dict[str, Any] | ConnectRefused:
    """Return the result or the refusal. It does not raise, so that the code stays spent."""
    client = redemption.asking.client
    code = codes.spend(redemption.code, client)
    if code is None:
        return InvalidCode()
    refusal = _refusal(code.user, redemption)
    if refusal is not None:
        codes.note_refusal(code, refusal.code)
        return refusal
    standing = consents.scopes_of(code.user, client)
    consents.grant(code.user, client, dict.fromkeys([*standing, *redemption.scopes]))
    notices.tell(code.user, client, redemption.scopes)
    return _result(code.user, redemption)


def _refusal(user: User, redemption: Redemption) -> ConnectRefused | None:
    """Return why the data of ``user`` is not shared, or None."""
    client = redemption.asking.client
    if not set(redemption.scopes) <= set(SCOPES):
        return UnknownScope()
    if user.environment != client.environment:
        return OtherEnvironment()
    requirement = policy.unmet(client.registered, user)
    return PolicyNotMet(requirement) if requirement is not None else None


def _result(user: User, redemption: Redemption) -> dict[str, Any]:
    """Build the answer and sign it."""
    shared = shared_with(user, redemption.scopes)
    result = {
        "status": "approved",
        "request_id": f"req_{uuid.uuid4().hex}",
        "user_id": user.subject,
        **({"data": shared} if switches.current().connect_nested else shared),
        "issued_at": clock.timestamp(clock.now()),
    }
    return result | {"signature": _signature(result, redemption.asking.secret)}


def shared_with(user: User, scopes: Sequence[str]) -> dict[str, Any]:
    """Return the data of ``user`` that ``scopes`` cover."""
    shared: dict[str, Any] = {}
    if PROFILE_BASIC in scopes:
        shared["profile"] = {
            "first_name": user.first_name,
            "last_name": user.last_name,
            "email": user.email,
            "country": user.country,
        }
    if KYC_STATUS in scopes:
        shared["kyc"] = verification.kyc_status(user)
    return shared


def _signature(result: Mapping[str, Any], secret: str) -> str:
    """Sign the canonical JSON of ``result`` with the method of the switch."""
    content = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    match switches.current().connect_signature:
        case ConnectSignature.HMAC:
            return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
        case ConnectSignature.JWS:
            return signing.sign_detached(content)
