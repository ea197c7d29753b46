"""How much a whole verification costs beside its signature, and beside another verifier's.

Ratios, of rates: ``bare_es256`` is ``verify`` beside ``cryptography``'s check of the same
signatures alone, with the key loaded and the signatures in DER beforehand; ``sd_jwt`` is ``verify``
beside the verifier of the ``sd-jwt`` package, which checks the signature and the digests. Every
credential of a pass is another one, of four disclosures each, so nothing could be remembered; the
key set is warm.

Figures: microseconds of each, of credentials with 1, 10 and 100 disclosures, and of a forgery (a
credential whose signature is another one's) as a share of an accepted credential.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from jwcrypto.common import base64url_decode
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer
from sd_jwt.verifier import SDJWTVerifier

from django_identity.credentials import KeySet, verify
from django_identity.exceptions import CredentialRejected
from tests.benchmarks.runner import Result, seconds_of

CREDENTIALS = 128
ROUNDS = 60
ISSUER, AUDIENCE = "https://api.identity.example", "client-1"
KEY = JWK.generate(kty="EC", crv="P-256", kid="key-1")
KEYS = KeySet.from_text(json.dumps({"keys": [KEY.export_public(as_dict=True)]}))


def issue(disclosures: int) -> str:
    """A credential of a new user with the four claims there are, and more if asked for."""
    now = int(time.time())
    claims: dict[str, object] = {
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
    claims |= {f"claim_{number}": True for number in range(disclosures - len(claims))}
    disclosed = {SDObj(name): value for name, value in list(claims.items())[:disclosures]}
    signed = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": str(uuid.uuid4()),
        "environment": "test",
        "iat": now,
        "exp": now + 86_400,
    }
    header = {"typ": "dc+sd-jwt", "kid": "key-1"}
    return SDJWTIssuer(signed | disclosed, KEY, extra_header_parameters=header).sd_jwt_issuance


def ours(credentials: list[str]) -> Callable[[], None]:
    def verify_each() -> None:
        for credential in credentials:
            verify(credential, keys=KEYS, issuer=ISSUER, audience=AUDIENCE, environment="test")

    return verify_each


def forgeries(credentials: list[str]) -> Callable[[], None]:
    """Each credential with the signature of the one before it."""
    tokens = [credential.partition("~")[0] for credential in credentials]
    forged = [
        credential.replace(token.rpartition(".")[2], other.rpartition(".")[2])
        for credential, token, other in zip(credentials, tokens, tokens[-1:] + tokens, strict=False)
    ]

    def refuse_each() -> None:
        for credential in forged:
            try:
                verify(credential, keys=KEYS, issuer=ISSUER, audience=AUDIENCE, environment="test")
            except CredentialRejected:
                continue
            raise AssertionError("a forgery was accepted")

    return refuse_each


def bare_es256(credentials: list[str]) -> Callable[[], None]:
    public_key = KEYS.get("key-1").public_key
    algorithm = ec.ECDSA(hashes.SHA256())
    signatures = []
    for credential in credentials:
        signed, _, signature = credential.partition("~")[0].rpartition(".")
        octets = base64url_decode(signature)
        r, s = int.from_bytes(octets[:32], "big"), int.from_bytes(octets[32:], "big")
        signatures.append((encode_dss_signature(r, s), signed.encode()))

    def check_each() -> None:
        for der, signed in signatures:
            public_key.verify(der, signed, algorithm)

    return check_each


def by_sd_jwt(credentials: list[str]) -> Callable[[], None]:
    public_key = JWK.from_json(KEY.export_public())

    def verify_each() -> None:
        for credential in credentials:
            SDJWTVerifier(credential, lambda issuer, header: public_key).get_verified_payload()

    return verify_each


def run() -> Result:
    credentials = [issue(4) for _ in range(CREDENTIALS)]
    seconds = seconds_of(
        {
            "verify": ours(credentials),
            "bare_es256": bare_es256(credentials),
            "sd_jwt": by_sd_jwt(credentials),
            "forgery": forgeries(credentials),
            **{f"verify_{n}": ours([issue(n) for _ in range(CREDENTIALS)]) for n in (1, 10, 100)},
        },
        rounds=ROUNDS,
    )
    figures = {f"{name}_us": total / CREDENTIALS * 1e6 for name, total in seconds.items()}
    figures["forgery_share"] = seconds["forgery"] / seconds["verify"]
    # 1 if the disclosures from the 11th to the 100th cost as much each as the 2nd to the 10th.
    figures["growth_per_disclosure"] = (
        (seconds["verify_100"] - seconds["verify_10"])
        / (seconds["verify_10"] - seconds["verify_1"])
        / 10
    )
    others = ("bare_es256", "sd_jwt")
    return Result("verify", {n: seconds[n] / seconds["verify"] for n in others}, figures)
