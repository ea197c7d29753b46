"""A whole verification beside the one of the package ``sd-jwt``, and beside its signature alone.

A ratio is our rate divided by the other's. Every credential of a pass is another one, of four
disclosures, so nothing could be remembered; the key set is warm.
"""

from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from jwcrypto.jwk import JWK
from sd_jwt.verifier import SDJWTVerifier

from benchmarks.harness import Figures, seconds_of
from tests.credentials.issuer import KEY, check, credential, jwk, unb64

CREDENTIALS = 128
ROUNDS = 60


def run() -> Figures:
    credentials = [credential(sub=f"subject-{number}") for number in range(CREDENTIALS)]
    contenders = {"verify": ours, "sd_jwt": by_sd_jwt, "bare_es256": bare_es256}
    taken = seconds_of(
        {name: make(credentials) for name, make in contenders.items()},
        rounds=ROUNDS,
    )
    figures = {f"{name}_us": each / CREDENTIALS * 1e6 for name, each in taken.items()}
    ratios = {
        f"ratio_{name}": taken[name] / taken["verify"]
        for name in ("sd_jwt", "bare_es256")
    }
    return {**ratios, **figures}


def ours(credentials: list[str]) -> Callable[[], None]:
    def verify_each() -> None:
        for each in credentials:
            check(each)

    return verify_each


def by_sd_jwt(credentials: list[str]) -> Callable[[], None]:
    public_key = JWK(**jwk())

    def verify_each() -> None:
        for each in credentials:
            SDJWTVerifier(
                each,
                lambda issuer, header: public_key,
            ).get_verified_payload()

    return verify_each


def bare_es256(credentials: list[str]) -> Callable[[], None]:
    public_key, algorithm, signatures = KEY.public_key(), ec.ECDSA(hashes.SHA256()), []
    for each in credentials:
        signed, _, signature = each.partition("~")[0].rpartition(".")
        octets = unb64(signature)
        r, s = int.from_bytes(octets[:32], "big"), int.from_bytes(octets[32:], "big")
        signatures.append((encode_dss_signature(r, s), signed.encode()))

    def check_each() -> None:
        for der, signed in signatures:
            public_key.verify(der, signed, algorithm)

    return check_each
