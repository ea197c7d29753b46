"""Credentials of issuers that are not ours verify: other people's reading of RFC 9901."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from django_identity.credentials import KeySet, RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    SUBJECT,
    check,
    header,
    join,
    listing,
    payload,
    rejection,
    token,
    unb64,
)

R = RejectionReason

DATA = Path(__file__).parent / "data"
BY_JS = json.loads((DATA / "sd_jwt_js.json").read_text("utf-8"))
PYTHON_KEY = JWK.generate(kty="EC", crv="P-256", kid="python-1")
PYTHON_KEYS = KeySet.from_jwks({"keys": [PYTHON_KEY.export_public(as_dict=True)]})
JS_KEYS = KeySet.from_jwks(BY_JS["jwks"])


def issued_by_python(claims, *, decoys=False):
    members = payload(_sd=ABSENT, _sd_alg=ABSENT)
    return SDJWTIssuer(
        members | {SDObj(name): value for name, value in claims.items()},
        PYTHON_KEY,
        add_decoy_claims=decoys,
        extra_header_parameters={"typ": "dc+sd-jwt", "kid": "python-1"},
    ).sd_jwt_issuance


@pytest.mark.parametrize("decoys", [False, True])
def test_sd_jwt_of_pypi(decoys):
    """What ``sd-jwt`` issues verifies, decoys at the top level included."""
    # It puts decoys into every object, and this profile is flat.
    left_out = ["kyc_verified"] if decoys else []
    claims = {name: CLAIMS[name] for name in CLAIMS if name not in left_out}
    text = issued_by_python(claims, decoys=decoys)
    verified = check(text, keys=PYTHON_KEYS, subject=SUBJECT)
    assert verified.claims == claims
    assert verified.kid == "python-1"


@pytest.mark.parametrize("case", BY_JS["credentials"], ids=range(4))
def test_sd_jwt_of_npm(case):
    """What ``@sd-jwt/core`` issues verifies, decoys included."""
    verified = check(case["credential"], keys=JS_KEYS, subject=SUBJECT)
    assert verified.claims_as_json() == case["claims"]
    assert verified.kid == "js-1"


# RFC 9901's own examples, as far as they apply to this profile


RFC = json.loads((DATA / "rfc9901.json").read_text("utf-8"))
PRIVATE = int.from_bytes(unb64(RFC["key"].pop("d")), "big")
KEY = ec.derive_private_key(PRIVATE, ec.SECP256R1())
SIGNED = unb64(RFC["token"].split(".")[1])
LISTED = json.loads(SIGNED)["_sd"]
RFC_KEYS = KeySet.from_jwks({"keys": [{**RFC["key"], "kid": "rfc"}]})


def ours(disclosures, listed=LISTED):
    """These disclosures under the header and payload of this profile, by the RFC's own key."""
    return join(token(header(kid="rfc"), payload(_sd=listed), KEY), disclosures)


def test_the_example_is_of_another_profile():
    """§5.1: its type is not ours; under our header, what stops it is the nested placeholder."""
    ours = token(header(kid="rfc"), SIGNED, KEY)
    for text, reason in ((RFC["token"], R.HEADER_TYP), (ours, R.PAYLOAD_NESTED)):
        assert rejection(join(text, RFC["disclosures"]), keys=RFC_KEYS) is reason


@pytest.mark.parametrize("left_out", [None, *range(8)])
def test_presentations_of_the_example(left_out):
    """§5.1, §5.2: its disclosures have the digests that are listed; any may be withheld."""
    pairs = zip(RFC["disclosures"], RFC["claims"].items(), strict=True)
    kept = [pair for place, pair in enumerate(pairs) if place != left_out]
    claims = dict(claim for _, claim in kept)
    assert check(ours([text for text, _ in kept]), keys=RFC_KEYS).claims == claims


@pytest.mark.parametrize("text", RFC["spellings"])
def test_a_disclosure_counts_as_it_was_spelled(text):
    """§4.2.1: a disclosure may be spelled in many ways; it counts as it was sent."""
    assert check(listing(text)).claims == {"family_name": "Möbius"}
    sent = ours([text], [RFC["digest"]])
    if text == RFC["spellings"][0]:
        assert check(sent, keys=RFC_KEYS)
    else:
        assert rejection(sent, keys=RFC_KEYS) is R.DISCLOSURE_UNLISTED
