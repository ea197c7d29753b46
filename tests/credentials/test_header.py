"""The header: rows 7 to 16 of the checklist."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives import serialization

from django_identity.credentials import KeySet, RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    DISCLOSURES,
    KEY,
    b64,
    check,
    encode,
    header,
    join,
    jwk,
    payload,
    rejection,
    token,
)
from tests.credentials.json_texts import NOT_STRICT

R = RejectionReason
HEADER_TEXT = json.dumps(header())
SHORT = {name: text for name, text in NOT_STRICT.items() if len(text) <= 3_000}


@pytest.mark.parametrize("text", SHORT.values(), ids=SHORT)
def test_json(text):
    """Rows 7 to 10: the header is one object of strict JSON in UTF-8."""
    assert rejection(join(token(text), DISCLOSURES)) is R.HEADER_JSON


@pytest.mark.parametrize(
    "text",
    [f" \t\r\n{HEADER_TEXT} \n", json.dumps(header(), indent=4), HEADER_TEXT.replace(" ", "")],
)
def test_white_space(text):
    """Row 10: white space around and inside is fine."""
    assert check(join(token(text), DISCLOSURES)).claims == CLAIMS


@pytest.mark.parametrize(
    "alg",
    [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS512", "ES384", "ES512", "ES256K", "RS256",
        "PS256", "EdDSA", "Ed25519", "ESP256", "es256", "ES256 ", ["ES256"], {"ES256": 1}, None,
        True, 256, ABSENT,
    ],
    ids=repr,
)  # fmt: skip
def test_alg(alg):
    """Row 11: ES256 and nothing else, even if the signature is a good one of ES256."""
    assert rejection(join(token(header(alg=alg)), DISCLOSURES)) is R.HEADER_ALG


PUBLIC_KEY = KEY.public_key()
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


@pytest.mark.parametrize(
    "secret",
    [
        PUBLIC_KEY.public_bytes(serialization.Encoding.PEM, SPKI),
        PUBLIC_KEY.public_bytes(serialization.Encoding.DER, SPKI),
        PUBLIC_KEY.public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        ),
        json.dumps(jwk()).encode(),
        b"",
    ],
    ids=["PEM", "DER", "point", "JWK", "empty"],
)
def test_public_key_as_a_secret(secret):
    """Row 11: a MAC under the public key, however it is spelled, is no signature."""
    signed = f"{encode(header(alg='HS256'))}.{encode(payload())}"
    mac = b64(hmac.digest(secret, signed.encode(), hashlib.sha256))
    assert rejection(join(f"{signed}.{mac}", DISCLOSURES)) is R.HEADER_ALG


@pytest.mark.parametrize(
    "typ",
    [
        "JWT", "vc+sd-jwt", "example+sd-jwt", "kb+jwt", "application/dc+sd-jwt", "DC+SD-JWT",
        "dc+sd-jwt ", "", ["dc+sd-jwt"], None, ABSENT,
    ],
    ids=repr,
)  # fmt: skip
def test_typ(typ):
    """Row 12: the type is exactly dc+sd-jwt."""
    assert rejection(join(token(header(typ=typ)), DISCLOSURES)) is R.HEADER_TYP


@pytest.mark.parametrize("crit", [[], None, ["b64"], ["exp"], "b64", {}, False], ids=repr)
def test_crit(crit):
    """Row 13: critical extensions are refused in any form."""
    assert rejection(join(token(header(crit=crit)), DISCLOSURES)) is R.HEADER_CRIT


@pytest.mark.parametrize(
    "source",
    [
        {"jwk": jwk()},
        {"jwk": None},
        {"jku": "https://evil.example/jwks.json"},
        {"x5c": ["MII"]},
        {"x5u": "https://evil.example/"},
    ],
)
def test_key_source(source):
    """Row 14: a header that brings or points to a key is refused, good signature or not."""
    assert rejection(join(token(header(**source)), DISCLOSURES)) is R.HEADER_KEY_SOURCE


def test_unknown_members():
    """Row 15: other members of the header are ignored."""
    extended = token(header(x={"y": [1]}, cty="json", b64=False))
    assert check(join(extended, DISCLOSURES)).claims == CLAIMS


@pytest.mark.parametrize("kid", [ABSENT, None, 1, True, ["key-1"], {"key-1": 1}], ids=repr)
def test_kid(kid):
    """Row 16: the key is named by a string, even if there is only one."""
    assert rejection(join(token(header(kid=kid)), DISCLOSURES)) is R.HEADER_KID


@pytest.mark.parametrize(
    "kid", ["", "KEY-1", "key-1 ", " key-1", "key-", "key-2", "\uff4bey-1"], ids=ascii
)
def test_kid_is_looked_up_exactly(kid):
    """Row 16: no other key is tried than the one of exactly that name."""
    assert rejection(join(token(header(kid=kid)), DISCLOSURES)) is R.KEY


def test_a_header_proves_nothing_by_having_been_seen():
    """A header names a key and nothing else: each signature under it is checked."""
    good = join(token(), DISCLOSURES)
    _, _, rest = good.partition(".")
    other = encode(header(x=1))
    for _ in range(2):
        assert check(good)
        assert rejection(f"{other}.{rest}") is R.SIGNATURE
        assert rejection(good, keys=KeySet.from_jwks({"keys": []})) is R.KEY
        assert rejection(f"{encode(header(typ='JWT'))}.{rest}") is R.HEADER_TYP
