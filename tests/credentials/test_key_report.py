"""What an operator is told of a key set."""

from __future__ import annotations

import json

import pytest
from jwcrypto.jwk import JWK

from django_identity.credentials.key_report import KeyReport, report, thumbprint
from django_identity.exceptions import MalformedAnswer
from tests.credentials.issuer import KEY, OTHER_KEY, jwk

RFC_7638 = {
    "kty": "RSA",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_"
    "BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY3"
    "68QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lF"
    "d2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    "e": "AQAB",
    "alg": "RS256",
    "kid": "2011-04-29",
}


def of(*keys: object) -> KeyReport:
    return report(json.dumps({"keys": list(keys)}))


def test_the_standards_own_example():
    """RFC 7638 §3.1: an RSA key and its thumbprint."""
    assert thumbprint(RFC_7638) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


@pytest.mark.parametrize(
    "made", [{"kty": "EC", "crv": "P-256"}, {"kty": "OKP", "crv": "Ed25519"}, {"kty": "RSA"}]
)
def test_another_library_agrees(made: dict[str, str]):
    """For every kind of key that can stand in a key set."""
    key = JWK.generate(**made)
    assert thumbprint(key.export_public(as_dict=True)) == key.thumbprint()


def test_good_keys_are_listed_without_a_warning():
    """By name and thumbprint, in the document's order."""
    found = of(jwk("a"), jwk("b", OTHER_KEY))
    assert [(key.kid, key.is_usable) for key in found.keys] == [("a", True), ("b", True)]
    assert [len(key.thumbprint) for key in found.keys] == [43, 43]
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        ([], "no key is usable"),
        ([jwk("a", use="enc")], "not for signatures"),
        ([jwk("a"), jwk("b", OTHER_KEY, d="AAAA")], "private part"),
        ([jwk("a"), jwk("b")], '"a", "b" are one and the same key'),
        ([jwk("a"), jwk("a", OTHER_KEY)], '"a" is used 2 times'),
        ([jwk(f"k{n}", KEY) for n in range(6)], "there are 6 keys"),
    ],
    ids=["none", "use", "private", "same", "repeated", "many"],
)
def test_what_is_odd_is_said(keys: list[object], warning: str):
    """One sentence for each thing that an operator should tell the service's."""
    assert any(warning in said for said in of(*keys).warnings)


@pytest.mark.parametrize("entry", [None, [], "a", {}, {"kid": []}, {"kid": 1, "kty": {}}, RFC_7638])
def test_any_entry_is_survived(entry: object):
    """Whatever stands in the list, the good key beside it is reported."""
    assert of(jwk("a"), entry).keys[0].is_usable


def test_names_are_escaped_and_cut():
    """A name comes from the wire; it is shown as JSON, and not at any length."""
    found = of(jwk("\x1b[31m" + "x" * 5000, use="enc"))
    assert len(found.keys[0].kid) == 100
    assert all(said.isascii() and said.isprintable() for said in found.warnings)


def test_what_is_no_key_set_is_refused():
    """As anywhere else."""
    with pytest.raises(MalformedAnswer):
        report("[]")
