"""Signed tokens that may name the subject: for whom each of them is."""

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.credentials import KeySet
from django_identity.credentials.identity_tokens import subject_of

KEY = ec.generate_private_key(ec.SECP256R1())
API, US, OTHER = "https://api.example", "our-client", "another-client"
PUBLISHED = jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {
    "kid": "k"
}
KEYS = KeySet.from_jwks({"keys": [PUBLISHED]})


def named_by(typ, **members):
    """Whom a good token with ``members`` names."""
    claims = {"iss": API, "sub": "ada", "exp": int(time.time()) + 60, **members}
    headers = {"kid": "k", "typ": typ}
    token = jwt.encode(claims, KEY, algorithm="ES256", headers=headers)
    return subject_of(token, keys=KEYS, issuer=API, audience=US)


FOR_OTHERS: list[Any] = [
    OTHER, [OTHER], [US, OTHER], [OTHER, US], [], [[US]], "", True, None, {US: US}, US + "x",
]  # fmt: skip


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "application/at+jwt"])
def test_a_token_for_others_names_nobody(typ):
    """Also one that is for us among others."""
    for aud in FOR_OTHERS:
        assert named_by(typ, aud=aud, client_id=US) is None


def test_a_token_for_us_names_the_person():
    """As text, and an ID token in a list of us alone (RFC 7519 §4.1.3)."""
    assert named_by("JWT", aud=US) == named_by("at+jwt", aud=US) == "ada"
    assert named_by("JWT", aud=[US]) == "ada"
    assert named_by("at+jwt", aud=[US]) is None


def test_an_access_token_may_be_for_the_api():
    """If it was issued to us, and an ID token never (RFC 9068 §2.2)."""
    assert named_by("at+jwt", aud=API, client_id=US) == "ada"
    assert named_by("at+jwt", aud=API, client_id=OTHER) is None
    assert named_by("at+jwt", aud=API) is None
    assert named_by("JWT", aud=API, client_id=US) is None
