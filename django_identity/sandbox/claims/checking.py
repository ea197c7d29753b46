"""The server-side check of a credential, for the application that it was issued to."""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.conf import settings
from jwcrypto.common import JWException
from jwcrypto.jwk import JWK
from jwcrypto.jws import InvalidJWSSignature
from sd_jwt.verifier import SDJWTVerifier

from django_identity.sandbox.claims.credentials import CREDENTIAL_FORMAT
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.keys import key_set
from django_identity.sandbox.models import Claim, Client

LONGEST_CREDENTIAL = 128 * 1024
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, JWException)
_REGISTERED = frozenset({"iss", "aud", "sub", "environment", "exp", "iat"})


class Fault(StrEnum):
    """Why a credential is not valid for an application."""

    MALFORMED = "malformed"
    SIGNATURE = "signature"
    ISSUER = "issuer"
    ENVIRONMENT = "environment"
    AUDIENCE = "audience"
    EXPIRED = "expired"
    DISCLOSURE = "disclosure"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first fault, or none and the disclosed claims."""

    fault: Fault | None
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


def check(credential: str, client: Client) -> Verdict:
    """Check whether ``credential`` is valid now for ``client`` (spec: Errors, last paragraph)."""
    try:
        verifier = SDJWTVerifier(credential[:LONGEST_CREDENTIAL], _issuer_key)
        signed, disclosed = verifier._sd_jwt_payload, verifier.get_verified_payload()
    except InvalidJWSSignature:
        return Verdict(Fault.SIGNATURE)
    except _UNREADABLE:
        return Verdict(Fault.MALFORMED)
    if not credential.endswith("~"):
        return Verdict(Fault.MALFORMED)
    claims = {name: value for name, value in disclosed.items() if name not in _REGISTERED}
    sent = credential.split("~")[1:-1]
    fault = _fault_of(signed, client, claims, unlisted={*map(_digest, sent)} - {*signed["_sd"]})
    return Verdict(fault, {} if fault else claims)


def _fault_of(
    signed: Mapping[str, Any], client: Client, claims: Mapping[str, Any], *, unlisted: set[str]
) -> Fault | None:
    """Return the first fault of a credential with a good signature."""
    revoked = Claim.objects.filter(user__subject=signed["sub"], claim_type__in=claims, revoked=True)
    faults = {
        Fault.ISSUER: signed["iss"] != settings.SANDBOX_ORIGIN,
        Fault.ENVIRONMENT: signed["environment"] != client.environment,
        Fault.AUDIENCE: signed["aud"] != client.client_id,
        Fault.EXPIRED: signed["exp"] <= clock.now().timestamp(),
        Fault.DISCLOSURE: bool(unlisted),
        Fault.REVOKED: revoked.exists(),
    }
    return next((fault for fault, is_found in faults.items() if is_found), None)


def _issuer_key(_issuer: str, header: Mapping[str, Any]) -> JWK:
    """Return the published key that the header names."""
    if header.get("typ") != CREDENTIAL_FORMAT or header.get("alg") != "ES256":
        raise ValueError("Not a credential.")
    for key in key_set.published()["keys"]:
        if key["kid"] == header.get("kid"):
            return JWK(**key)
    raise InvalidJWSSignature("No published key.")


def _digest(disclosure: str) -> str:
    digest = hashlib.sha256(disclosure.encode("ascii")).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")
