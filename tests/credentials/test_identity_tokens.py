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
    "kid": "k",
}
KEYS = KeySet.from_jwks({"keys": [PUBLISHED]})


def named_by(typ, **members):
    """Whom a good token with ``members`` names."""
    claims = {"iss": API, "sub": "ada", "exp": int(time.time()) + 60, **members}
    headers = {"kid": "k", "typ": typ}
    token = jwt.encode(claims, KEY, algorithm="ES256", headers=headers)
    return subject_of(token, keys=KEYS, issuer=API, audience=US)


FOR_OTHERS: list[Any] = [
    OTHER,
    [OTHER],
    [US, OTHER],
    [OTHER, US],
    [],
    [[US]],
    "",
    True,
    None,
    {US: US},
    US + "x",
]


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "application/at+jwt"])
def test_a_token_for_others_names_nobody(typ):
    """Also one that is for us among others."""
    for aud in FOR_OTHERS:
        assert named_by(typ, aud=aud, client_id=US) is None


@pytest.mark.parametrize(
    ("typ", "members", "named"),
    [
        # As text, and an ID token in a list of us alone (RFC 7519 §4.1.3).
        ("JWT", {"aud": US}, "ada"),
        ("at+jwt", {"aud": US}, "ada"),
        ("JWT", {"aud": [US]}, "ada"),
        ("at+jwt", {"aud": [US]}, None),
        # An access token for the API, if it was issued to us (RFC 9068 §2.2).
        ("at+jwt", {"aud": API, "client_id": US}, "ada"),
        ("at+jwt", {"aud": API, "client_id": OTHER}, None),
        ("at+jwt", {"aud": API}, None),
        ("JWT", {"aud": API, "client_id": US}, None),
    ],
)
def test_a_token_for_us_names_the_person(typ, members, named):
    assert named_by(typ, **members) == named
