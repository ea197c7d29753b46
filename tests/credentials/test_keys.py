"""Keys and key sets: rows 17 to 20 of the checklist, and its part 4."""

import json
import pickle

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.credentials import KeySet, RejectionReason
from django_identity.exceptions import MalformedAnswer
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    FIELD,
    KEY,
    OTHER_KEY,
    b64,
    check,
    credential,
    jwk,
    rejection,
    unb64,
    written,
)
from tests.credentials.json_texts import NOT_STRICT

R = RejectionReason
P384_KEY = ec.derive_private_key(3, ec.SECP384R1())
SECP256K1_KEY = ec.derive_private_key(3, ec.SECP256K1())
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B


def key_set(*entries):
    return KeySet.from_jwks({"keys": list(entries)})


def coordinate(number, octets=32):
    return b64(number.to_bytes(octets, "big"))


def y_of(x):
    """Of the point with this x, if there is one: y² = x³ - 3x + b."""
    return pow((x**3 - 3 * x + B) % FIELD, (FIELD + 1) // 4, FIELD)


# A small point: x + p still fits into 32 octets.
X, Y = 5, y_of(5)
POINT = KEY.public_key().public_numbers()
SHORT_X = {"x": b64(unb64(jwk()["x"])[1:])}
LAST = jwk()["x"][-1]

UNUSABLE = {
    "no kty": {"kty": ABSENT},
    "RSA": {"kty": "RSA"},
    "kty in lower case": {"kty": "ec"},
    "oct": {"kty": "oct", "k": "AAAA"},
    "no crv": {"crv": ABSENT},
    "crv in lower case": {"crv": "p-256"},
    "P-384": {"crv": "P-384"},
    "crv list": {"crv": ["P-256"]},
    "private": {"d": "AAAA"},
    "private, null": {"d": None},
    "use enc": {"use": "enc"},
    "use null": {"use": None},
    "use list": {"use": ["sig"]},
    "alg ES384": {"alg": "ES384"},
    "alg null": {"alg": None},
    "alg HS256": {"alg": "HS256"},
    "key_ops sign": {"key_ops": ["sign"]},
    "key_ops none": {"key_ops": []},
    "key_ops text": {"key_ops": "verify"},
    "key_ops null": {"key_ops": None},
    "no x": {"x": ABSENT},
    "no y": {"y": ABSENT},
    "x number": {"x": 1},
    "x empty": {"x": ""},
    "x short": SHORT_X,
    "x long": {"x": coordinate(POINT.x, 33)},
    "x padded": {"x": jwk()["x"] + "="},
    "x of another alphabet": {"x": "+" * 43},
    "x not ASCII": {"x": "é" * 43},
    "x not canonical": {"x": jwk()["x"][:-1] + chr(ord(LAST) + 1)},
    "off the curve": {"y": coordinate(POINT.y ^ 1)},
    "origin": {"x": coordinate(0), "y": coordinate(0)},
    "x beyond the field": {"x": coordinate(X + FIELD), "y": coordinate(Y)},
    "x is p": {"x": coordinate(FIELD)},
    "y beyond the field": {"y": coordinate(2**256 - 1)},
    "kid number": {"kid": 1},
    "kid null": {"kid": None},
    "no kid": {"kid": ABSENT},
}


def test_a_key_for_anything_else_is_left_out():
    """Rows 17 to 19: the usable ones of the same set still work."""
    for name, changes in UNUSABLE.items():
        keys = key_set(jwk(**changes))
        assert len(keys) == 0, name
        assert rejection(credential(), keys=keys) is R.KEY
        broken = jwk("key-2", OTHER_KEY) | {"kid": "key-2"} | changes
        beside = key_set({k: v for k, v in broken.items() if v is not ABSENT}, jwk())
        assert repr(beside) == "<KeySet ['key-1']>", name
        assert check(credential(), keys=beside).claims == CLAIMS


def test_a_coordinate_in_the_other_alphabet_is_unusable():
    """Row 17: a good point whose x is in standard base64 is not read as if it were right."""
    keys = (ec.derive_private_key(number, ec.SECP256R1()) for number in range(1, 99))
    key = next(key for key in keys if {*jwk(key=key)["x"]} >= {"-", "_"})
    right = jwk(key=key)["x"]
    assert len(key_set(jwk(key=key))) == 1
    for x in (right.replace("-", "+"), right.replace("_", "/")):
        assert len(key_set(jwk(key=key, x=x))) == 0


def test_the_field_ends_before_its_prime():
    """Row 18: p itself would reduce to zero, which is the x of a point. Small points are usable."""
    for x, y, usable in ((X, Y, 1), (0, y_of(0), 1), (FIELD, y_of(0), 0)):
        assert len(key_set(jwk(x=coordinate(x), y=coordinate(y)))) == usable


def test_a_key_may_state_its_use_and_unknown_members():
    """Row 17: what a key says of itself may be there if it is right."""
    more = {"x5t": "abc", "unknown": {"deep": []}}
    for operations in (ABSENT, ["verify"], ["sign", "verify"]):
        keys = key_set(jwk(use="sig", alg="ES256", key_ops=operations, **more))
        assert check(credential(), keys=keys).claims == CLAIMS


REPEATED = {
    "the same": jwk(),
    "another": jwk(key=OTHER_KEY),
    "with its private part": jwk(d="AAAA"),
    "that cannot be read": jwk(x=1),
}


@pytest.mark.parametrize("second", REPEATED.values(), ids=REPEATED)
def test_a_repeated_kid_is_unusable(second):
    """Row 17: of two keys for ES256 with one name neither is used."""
    for entries in ([jwk(), second], [second, jwk()]):
        keys = key_set(*entries, jwk("key-2", OTHER_KEY))
        assert repr(keys) == "<KeySet ['key-2']>"


OTHER_TYPES = {
    "RSA": {"kty": "RSA"},
    "oct": {"kty": "oct", "k": "AAAA"},
    "Ed25519": {"kty": "OKP", "crv": "Ed25519"},
    "P-384": {"crv": "P-384"},
    "enc": {"use": "enc"},
    "ECDH": {"alg": "ECDH-ES"},
    "derives": {"key_ops": ["deriveKey"]},
}


@pytest.mark.parametrize("second", OTHER_TYPES.values(), ids=OTHER_TYPES)
def test_a_kid_may_stand_for_two_types(second):
    """RFC 7517 §4.5: of them only one can verify ES256, and that one is used."""
    other = {**jwk(key=OTHER_KEY), **second}
    for entries in ([jwk(), other], [other, jwk()]):
        assert check(credential(), keys=key_set(*entries)).claims == CLAIMS


def test_malformed_entries_are_skipped():
    """Row 19: what is no key at all does not disturb either."""
    entries = (None, 1, "key-1", [], ["kid"], True, {})
    assert repr(key_set(*entries, jwk(), *entries)) == "<KeySet ['key-1']>"


def test_other_curves_never_verify():
    """Row 19: not even secp256k1, whose signatures have the same length."""
    signed = written(key=SECP256K1_KEY)
    for curve, key in (("P-384", P384_KEY), ("secp256k1", SECP256K1_KEY)):
        assert rejection(signed, keys=key_set(jwk(key=key, crv=curve))) is R.KEY
        assert len(key_set(jwk(key=key, crv="P-256"))) == 0


def test_sets_learn_nothing_from_each_other():
    """Row 20: the same kid in another set is another key."""
    ours, theirs = key_set(jwk()), key_set(jwk(key=OTHER_KEY))
    by_us = credential()
    by_them = written(key=OTHER_KEY)
    for _ in range(2):
        assert check(by_us, keys=ours) == check(by_them, keys=theirs)
        assert rejection(by_them, keys=ours) is R.SIGNATURE
        assert rejection(by_us, keys=theirs) is R.SIGNATURE


NO_SETS = [None, [], "keys", 1, {}, {"keys": None}, {"keys": {}}, {"Keys": []}]


def test_a_document_that_is_no_key_set_is_a_failure():
    """Part 4, 2: one object of strict JSON. A failure is no empty set."""
    for document in NO_SETS:
        with pytest.raises(MalformedAnswer, match="jwks"):
            KeySet.from_jwks(document)
    for text in (*map(json.dumps, NO_SETS), *NOT_STRICT.values()):
        with pytest.raises(MalformedAnswer):
            KeySet.from_text(text)


def test_text_of_either_kind():
    """A set is read from bytes, text, or the parsed document. Its repr shows names alone."""
    document = {"keys": [jwk(key_ops=["verify"]), jwk("key-2", OTHER_KEY), 5]}
    text = json.dumps(document)
    read = (
        KeySet.from_jwks(document),
        KeySet.from_text(text),
        KeySet.from_text(text.encode()),
    )
    for keys in read:
        assert repr(keys) == "<KeySet ['key-1', 'key-2']>"
        assert check(credential(), keys=keys).kid == "key-1"


def test_sets_are_not_pickled():
    """Part 4, 13: what is cached is the text, never a key object."""
    with pytest.raises(TypeError):
        pickle.dumps(key_set(jwk()))


def test_a_key_set_is_bounded_in_size_and_number():
    """Part 4, 2: at most 64 KB and 32 keys, and text that can be UTF-8."""
    entries = [jwk(f"key-{number}") for number in range(33)]
    empty = '{"keys":[]}'
    assert len(key_set(*entries[:32])) == 32
    assert len(KeySet.from_text(empty.ljust(64 * 1024))) == 0

    with pytest.raises(MalformedAnswer):
        key_set(*entries)
    not_ascii = '{"keys":["' + "é" * 32 * 1024 + '"]}'
    for text in ('{"keys":["\ud800"]}', empty.ljust(64 * 1024 + 1), not_ascii):
        with pytest.raises(MalformedAnswer):
            KeySet.from_text(text)
