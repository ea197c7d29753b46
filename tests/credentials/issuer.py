"""An issuer that can write any credential, right or wrong, and sign it properly.

It shares no code with what it tests, so that a mistake there is not repeated here.
"""

import base64
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from django_identity.credentials import (
    KeySet,
    RejectionReason,
    VerifiedCredential,
    verify,
)
from django_identity.exceptions import CredentialRejected

ISSUER = "https://api.identity.example"
AUDIENCE = "client-1"
SUBJECT = "6f2c1a9e-0b7d-4c55-9a3e-d1f0c2b4a687"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
EPOCH_NOW = int(NOW.timestamp())
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
FIELD = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF

KEY = ec.derive_private_key(0x1D0C5E1F, ec.SECP256R1())
OTHER_KEY = ec.derive_private_key(0x2D0C5E2F, ec.SECP256R1())

HEADER: dict[str, Any] = {"alg": "ES256", "typ": "dc+sd-jwt", "kid": "key-1"}
CLAIMS: dict[str, Any] = {
    "kyc_verified": {
        "verified": True,
        "provider": "vendor",
        "issued_at": "2026-11-20T11:00:00Z",
        "expires_at": None,
    },
    "age_over_18": True,
    "country_resident": "NG",
    "unique_human": True,
}
#: The value of a member that is left out.
ABSENT: Any = object()


def b64(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encode(content: Any) -> str:
    """Bytes and text as they are, anything else as JSON."""
    if isinstance(content, str):
        content = content.encode()
    return b64(content if isinstance(content, bytes) else json.dumps(content).encode())


def digest(disclosure: str) -> str:
    return b64(hashlib.sha256(disclosure.encode()).digest())


def disclose(name: str, value: Any, salt: str | None = None) -> str:
    return encode([salt or f"salt of {name}", name, value])


DISCLOSURES = [disclose(name, value) for name, value in CLAIMS.items()]


def without_absent(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def header(**changes: Any) -> dict[str, Any]:
    return without_absent(HEADER | changes)


def payload(**changes: Any) -> dict[str, Any]:
    members = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": SUBJECT,
        "environment": "test",
        "iat": EPOCH_NOW - 60,
        "exp": EPOCH_NOW + 86_400,
        "_sd_alg": "sha-256",
        "_sd": [digest(disclosure) for disclosure in DISCLOSURES],
    }
    return without_absent(members | changes)


def raw_signature(signed: str, key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def token(
    head: Any = None,
    body: Any = None,
    key: ec.EllipticCurvePrivateKey = KEY,
) -> str:
    """A signed token; ``head`` and ``body`` are members, or the very text of the JSON."""
    signed = encode(header() if head is None else head) + "."
    signed += encode(payload() if body is None else body)
    return f"{signed}.{b64(raw_signature(signed, key))}"


def join(signed_token: str, disclosures: list[str]) -> str:
    return "".join(f"{part}~" for part in (signed_token, *disclosures))


def written(
    head: Any = None,
    body: Any = None,
    key: ec.EllipticCurvePrivateKey = KEY,
) -> str:
    """A credential of ``token(head, body, key)``, with every disclosure."""
    return join(token(head, body, key), DISCLOSURES)


def credential(*, disclosures: list[str] = DISCLOSURES, **changes: Any) -> str:
    """A valid credential, but for ``changes`` to the members of its payload."""
    return join(token(body=payload(**changes)), disclosures)


def listing(*disclosures: str, **changes: Any) -> str:
    listed = [digest(disclosure) for disclosure in disclosures]
    return credential(disclosures=list(disclosures), _sd=listed, **changes)


def jwk(
    kid: Any = "key-1",
    key: ec.EllipticCurvePrivateKey = KEY,
    **changes: Any,
) -> dict[str, Any]:
    point = key.public_key().public_numbers()
    octets = (key.curve.key_size + 7) // 8
    x, y = (b64(number.to_bytes(octets, "big")) for number in (point.x, point.y))
    members = {"kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y}
    return without_absent(members | changes)


KEYS = KeySet.from_jwks({"keys": [jwk()]})


def check(text: str, **changes: Any) -> VerifiedCredential:
    expected = {"keys": KEYS, "issuer": ISSUER, "audience": AUDIENCE, "now": NOW}
    return verify(text, **{"environment": "test", **expected, **changes})


def rejection(text: str, **changes: Any) -> RejectionReason:
    with pytest.raises(CredentialRejected) as caught:
        check(text, **changes)
    return caught.value.reason
