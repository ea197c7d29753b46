"""Documents (spec: Scopes, trusted tier): the keys of trusted applications, and encrypting to them.

Documents are made up from the account at each reading, and stored nowhere.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from jwcrypto.common import JWException
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from django_identity.sandbox import envelope
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import KycStatus, User
from django_identity.sandbox.people.endpoints import reading

# Algorithm -> the type of its keys.
ALGORITHMS = {
    "RSA-OAEP-256": "RSA",
    "ECDH-ES": "EC",
    "ECDH-ES+A128KW": "EC",
    "ECDH-ES+A256KW": "EC",
}
CONTENT_ENCRYPTION = "A256GCM"
SHORTEST_RSA_KEY = 2048
LONGEST_KID = 200
TRUSTED_TIER_REQUIRED = "TRUSTED_TIER_REQUIRED"
IMAGE = Path(__file__).parent / "static" / "sandbox" / "passport.png"


def public_key(jwk: object) -> dict[str, Any]:
    """Return ``jwk`` if it is a public key with a ``kid`` and one algorithm.

    Raises:
        Invalid: the message says why.
    """
    if not isinstance(jwk, Mapping):
        raise Invalid("document_key: the key is a JWK: a JSON object.")
    kid = jwk.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= LONGEST_KID:
        raise Invalid(
            "document_key: the key needs a kid, by which you find its private part.",
        )

    algorithm = jwk.get("alg")
    if not isinstance(algorithm, str) or jwk.get("kty") != ALGORITHMS.get(
        algorithm,
        "",
    ):
        raise Invalid(
            f"document_key: alg is one of {', '.join(ALGORITHMS)}, and kty fits it.",
        )
    try:
        key = JWK(**jwk)
        parts: dict[str, Any] = key.export_public(as_dict=True)
        encrypt(b"", parts)  # the library checks a key when it is used
    except (JWException, ValueError, TypeError) as error:
        raise Invalid("document_key: the key is not a valid JWK.") from error

    if key.has_private:
        raise Invalid(
            "document_key: this is your private key. Keep it, and register its public part.",
        )
    if parts["kty"] == "RSA" and key.get_op_key("encrypt").key_size < SHORTEST_RSA_KEY:
        raise Invalid(f"document_key: an RSA key has at least {SHORTEST_RSA_KEY} bits.")
    return parts


def encrypt(content: bytes, key: Mapping[str, Any]) -> str:
    """Encrypt ``content`` to the registered ``key``, in the compact serialisation."""
    header = {"alg": key["alg"], "enc": CONTENT_ENCRYPTION, "kid": key["kid"]}
    sealed = JWE(content, protected=json.dumps(header))
    sealed.add_recipient(JWK(**key))
    compact: str = sealed.serialize(compact=True)
    return compact


@envelope.endpoint("GET")
def metadata(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return the type, country and status of each document, without its content."""
    user = reading(request, user_id, "documents:metadata").user
    listed = [_metadata(user, kind) for kind, _type, _content in _papers(user)]
    return envelope.success({"user_id": user.subject, "documents": listed})


@envelope.endpoint("GET")
def documents(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return each document with its content, encrypted to the application's key."""
    token = reading(request, user_id, "documents:read")
    user = token.user
    key = token.application.registered.document_key
    if key is None:
        message = "The application is not approved for the trusted tier."
        raise envelope.Refused(403, TRUSTED_TIER_REQUIRED, message)
    listed = [
        _metadata(user, kind)
        | {"content_type": content_type, "content": encrypt(content, key)}
        for kind, content_type, content in _papers(user)
    ]
    return envelope.success({"user_id": user.subject, "documents": listed})


def _papers(user: User) -> Iterator[tuple[str, str, bytes]]:
    """Yield type, content type and content. An unverified person has handed in none."""
    if user.kyc_status == KycStatus.UNVERIFIED:
        return
    # Digits that are this person's own, and nobody's number in the real world. A viewer skips them
    # behind the picture, but they tell one person's from another's.
    number = str(int(hashlib.sha256(user.subject.encode()).hexdigest(), 16))[:11]
    names = {"first_name": user.first_name, "last_name": user.last_name}
    yield "passport", "image/png", IMAGE.read_bytes() + number.encode()
    yield _data("national_id", names | {"national_id_number": number})
    yield _data("bank_verification_number", {"bank_verification_number": number})
    if user.address_proved_at is not None:
        yield _data(
            "proof_of_address",
            names | {"number": number, "country": user.country},
        )


def _data(kind: str, members: Mapping[str, str]) -> tuple[str, str, bytes]:
    return kind, "application/json", json.dumps(members).encode()


def _metadata(user: User, kind: str) -> dict[str, str]:
    return {
        "document_id": hashlib.sha256(f"{user.subject}/{kind}".encode()).hexdigest()[
            :16
        ],
        "document_type": kind,
        "country": user.country,
        "status": str(user.kyc_status),
    }
