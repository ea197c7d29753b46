"""The credential (spec: Credential structure): issued, taken apart, and POST /claims/verify."""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from jwcrypto.common import JWException, json_encode
from jwcrypto.jwk import JWK
from jwcrypto.jws import InvalidJWSSignature
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer
from sd_jwt.verifier import SDJWTVerifier

from django_identity.sandbox import clients, clock, envelope, keys, switches
from django_identity.sandbox.claims import COUNTRY_RESIDENT
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import Claim, User

CREDENTIAL_FORMAT = "dc+sd-jwt"
LONGEST_CREDENTIAL = 128 * 1024
# Claim -> the member that says what is claimed, where that is more than yes.
_NOUNS = {COUNTRY_RESIDENT: "country"}
#: Subject -> the credential that an application received last.
last: dict[str, str] = {}
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    JWException,
)
#: What can be wrong with a credential, in the order in which an application is told.
_FAULTS = (
    "signature",
    "issuer",
    "environment",
    "audience",
    "expired",
    "disclosure",
    "revoked",
)


def issue(user: User, claims: Iterable[Claim], *, audience: str) -> str:
    """Issue the credential that discloses ``claims`` of ``user``; it ends with ``~``.

    Args:
        user: the person, who becomes ``sub``.
        claims: what is disclosed: the caller leaves out revoked claims.
        audience: the ``client_id`` of the requesting application.
    """
    issued_at = int(clock.now().timestamp())
    payload: dict[Any, Any] = {
        "iss": settings.SANDBOX_ORIGIN,
        "aud": audience,
        "sub": user.subject,
        "environment": user.environment,
        "exp": issued_at + user.credential_seconds,
    }
    if switches.current().claims_iat:
        payload["iat"] = issued_at

    disclosed = {SDObj(claim.claim_type): _disclosed(claim) for claim in claims}
    if not disclosed:  # the library leaves an empty list of digests out
        content = json_encode({**payload, "_sd": [], "_sd_alg": "sha-256"})
        return keys.sign(content, typ=CREDENTIAL_FORMAT) + "~"

    key = keys.current()
    header = {"typ": CREDENTIAL_FORMAT, "kid": key.kid}
    issuer = SDJWTIssuer(
        payload | disclosed,
        keys.private_key(key),
        sign_alg="ES256",
        extra_header_parameters=header,
    )
    credential: str = issuer.sd_jwt_issuance
    return credential


def _disclosed(claim: Claim) -> Any:
    """Return the value in the form that the specification shows for ``kyc_verified``, or bare."""
    if isinstance(claim.value, dict) or switches.current().claim_values == "bare":
        return claim.value
    value = {
        "verified": True,
        "provider": claim.provider,
        "issued_at": clock.timestamp(claim.issued_at),
        "expires_at": clock.timestamp_if_any(claim.expires_at),
    }
    noun = _NOUNS.get(claim.claim_type, "value")
    if isinstance(claim.value, bool):
        noun = "verified"
    return value | {noun: claim.value}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One disclosure as it was transmitted, its content with line breaks, and its digest."""

    text: str
    readable: str
    name: str
    value: Any
    digest: str
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Inspection:
    """The parts of a credential, and its findings: a fault's name -> whether it was found.

    ``revoked``: which of the disclosed claims are.
    """

    header: dict[str, Any]
    payload: dict[str, Any]
    expires_at: datetime
    disclosures: list[Disclosure]
    findings: dict[str, bool]
    revoked: list[str]
    claims: dict[str, Any] = field(repr=False)


def inspect(credential: str) -> Inspection:
    """Take ``credential`` apart, and look for what is wrong for whatever application.

    Raises:
        Invalid: it cannot be read.
    """
    text = "".join(credential.split())[:LONGEST_CREDENTIAL]
    try:
        token, *parts = text.split("~")
        header, payload = map(_decoded, token.split(".")[:2])
        listed = payload.get("_sd", [])
        disclosures = [_disclosure(part, listed) for part in parts if part]
        expires_at = datetime.fromtimestamp(payload["exp"], UTC)
        if parts[-1:] != [""]:
            raise ValueError("It does not end with ~.")
        is_signed = _is_signed(text)
    except (*_UNREADABLE, OverflowError, OSError) as error:
        raise Invalid(str(error)) from error

    claims = {disclosure.name: disclosure.value for disclosure in disclosures}
    of_person = Claim.objects.filter(
        user__subject=payload.get("sub"),
        claim_type__in=claims,
    )
    revoked = sorted(
        of_person.filter(revoked=True).values_list("claim_type", flat=True),
    )
    findings = {
        "signature": not is_signed,
        "issuer": payload.get("iss") != settings.SANDBOX_ORIGIN,
        "expired": expires_at <= clock.now(),
        "disclosure": not all(disclosure.is_listed for disclosure in disclosures),
        "revoked": bool(revoked),
    }
    return Inspection(
        header,
        payload,
        expires_at,
        disclosures,
        findings,
        revoked,
        claims,
    )


@envelope.endpoint("POST")
def verify_claims(request: HttpRequest) -> HttpResponse:
    """POST /claims/verify: tell an application whether a credential is valid, and what it says."""
    client, _secret = clients.authenticate(request)
    credential = envelope.members_of(request).get("credential")
    if not isinstance(credential, str):
        raise Invalid("credential must be a string.")
    try:
        found = inspect(credential)
    except Invalid:
        return envelope.success({"valid": False, "reason": "malformed", "claims": {}})

    faults = found.findings | {
        "environment": found.payload.get("environment") != client.environment,
        "audience": found.payload.get("aud") != client.client_id,
    }
    for reason in _FAULTS:
        if faults[reason]:
            return envelope.success({"valid": False, "reason": reason, "claims": {}})
    return envelope.success({"valid": True, "reason": None, "claims": found.claims})


def _is_signed(credential: str) -> bool:
    """Return whether a published key signed it; what cannot be read raises."""
    try:
        SDJWTVerifier(credential, _issuer_key)
    except (InvalidJWSSignature, KeyError):
        return False
    return True


def _issuer_key(_issuer: str, header: dict[str, Any]) -> JWK:
    """Return the published key that the header names."""
    if header.get("typ") != CREDENTIAL_FORMAT or header.get("alg") != "ES256":
        raise ValueError("Not a credential.")
    published = {key["kid"]: key for key in keys.published()["keys"]}
    return JWK(**published[header["kid"]])


def _disclosure(text: str, listed: list[str]) -> Disclosure:
    content = _decoded(text)
    _salt, name, value = content
    if not isinstance(name, str):
        raise TypeError("The name of a claim is no text.")
    hashed = hashlib.sha256(text.encode("ascii")).digest()
    digest = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
    readable = json.dumps(content, indent=2, ensure_ascii=False)
    return Disclosure(text, readable, name, value, digest, digest in listed)


def _decoded(text: str) -> Any:
    """Return the JSON in ``text``, which is base64url."""
    padded = text + "=" * (-len(text) % 4)
    return json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
