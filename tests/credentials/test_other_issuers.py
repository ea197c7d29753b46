"""Credentials of issuers that are not ours verify: other people's reading of RFC 9901."""

import json
from pathlib import Path

import pytest
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from django_identity.credentials import KeySet, RejectionReason
from tests.credentials.issuer import CLAIMS, SUBJECT, check, payload, rejection

BY_JS = json.loads((Path(__file__).parent / "data" / "sd_jwt_js.json").read_text("utf-8"))
PYTHON_KEY = JWK.generate(kty="EC", crv="P-256", kid="python-1")
PYTHON_KEYS = KeySet.from_text(json.dumps({"keys": [PYTHON_KEY.export_public(as_dict=True)]}))
JS_KEYS = KeySet.from_jwks(BY_JS["jwks"])


def issued_by_python(claims: dict, *, decoys: bool = False) -> str:
    signed = {name: value for name, value in payload().items() if not name.startswith("_")}
    return SDJWTIssuer(
        signed | {SDObj(name): value for name, value in claims.items()},
        PYTHON_KEY,
        add_decoy_claims=decoys,
        extra_header_parameters={"typ": "dc+sd-jwt", "kid": "python-1"},
    ).sd_jwt_issuance


@pytest.mark.parametrize("decoys", [False, True])
@pytest.mark.parametrize("count", range(len(CLAIMS) + 1))
def test_sd_jwt_of_pypi(count, decoys):
    """What ``sd-jwt`` issues verifies, decoys at the top level included."""
    claims = dict(list(CLAIMS.items())[:count])
    if decoys:
        # It puts decoys into every object, and this profile is flat.
        claims.pop("kyc_verified", None)
    verified = check(issued_by_python(claims, decoys=decoys), keys=PYTHON_KEYS, subject=SUBJECT)
    assert verified.claims == claims
    assert verified.kid == "python-1"


@pytest.mark.parametrize("case", BY_JS["credentials"], ids=range(4))
def test_sd_jwt_of_npm(case):
    """What ``@sd-jwt/core`` issues verifies, decoys included."""
    verified = check(case["credential"], keys=JS_KEYS, subject=SUBJECT)
    assert verified.claims_as_json() == case["claims"]
    assert verified.kid == "js-1"


def test_what_is_refused_of_others():
    """The bent end that ``sd-jwt`` would ignore, and credentials under another issuer's keys."""
    bent = issued_by_python(CLAIMS)[:-1]
    assert rejection(bent, keys=PYTHON_KEYS) is RejectionReason.FORMAT_TILDE
    text = BY_JS["credentials"][0]["credential"]
    assert rejection(text, keys=PYTHON_KEYS) is RejectionReason.KEY
