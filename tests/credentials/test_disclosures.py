"""The disclosures: rows 35 to 44 of the checklist."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json

import pytest

from django_identity.credentials import RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    DISCLOSURES,
    b64,
    check,
    credential,
    digest,
    disclose,
    encode,
    listing,
    payload,
    rejection,
    unb64,
)
from tests.credentials.json_texts import NOT_STRICT_VALUES

R = RejectionReason
# A disclosure whose digest is written differently in the two alphabets.
ONE = next(text for n in range(99) if {*digest(text := disclose("a", 1, f"{n}"))} >= {"-", "_"})
HASH = hashlib.sha256(ONE.encode()).digest()


@pytest.mark.parametrize(
    "listed",
    [
        HASH.hex(),
        base64.urlsafe_b64encode(HASH).decode(),
        base64.b64encode(HASH).decode(),
        base64.b64encode(HASH).decode().rstrip("="),
        b64(hashlib.sha256(unb64(ONE)).digest()),
        b64(hashlib.sha512(ONE.encode()).digest()),
        b64(hashlib.sha256(ONE.encode() + b"~").digest()),
        digest(ONE).swapcase(),
        digest(ONE) + " ",
        digest(ONE)[:-1],
        ONE,
        "",
    ],
    ids=[
        "hex", "padded", "standard, padded", "standard", "over octets", "sha-512", "with tilde",
        "case", "space", "cut", "itself", "empty",
    ],
)  # fmt: skip
def test_digest(listed):
    """Row 35: the digest is base64url of SHA-256 of the text as sent, compared exactly."""
    assert check(credential(disclosures=[ONE], _sd=[digest(ONE)])).claims == {"a": 1}
    assert rejection(credential(disclosures=[ONE], _sd=[listed])) is R.DISCLOSURE_UNLISTED


@pytest.mark.parametrize("place", range(5))
def test_unlisted(place):
    """Row 36: one foreign disclosure rejects the whole credential."""
    foreign = disclose("age_over_21", True)
    sent = [*DISCLOSURES[:place], foreign, *DISCLOSURES[place:]]
    assert rejection(credential(disclosures=sent)) is R.DISCLOSURE_UNLISTED
    assert rejection(credential(disclosures=[foreign])) is R.DISCLOSURE_UNLISTED


def test_same_claim_in_another_spelling():
    """Row 36: the digest is of the text, not of what it says."""
    salt, name, value = json.loads(unb64(DISCLOSURES[1]))
    other = encode(json.dumps([salt, name, value], separators=(",", ":")))
    assert other != DISCLOSURES[1]
    assert rejection(credential(disclosures=[other])) is R.DISCLOSURE_UNLISTED


@pytest.mark.parametrize("repeated", DISCLOSURES)
def test_repeat(repeated):
    """Row 37: no disclosure is sent twice."""
    assert rejection(credential(disclosures=[*DISCLOSURES, repeated])) is R.DISCLOSURE_REPEAT
    assert rejection(credential(disclosures=[repeated, repeated])) is R.DISCLOSURE_REPEAT


@pytest.mark.parametrize("value", NOT_STRICT_VALUES.values(), ids=NOT_STRICT_VALUES)
def test_json(value):
    """Rows 7 to 9: a disclosure is strict JSON in UTF-8, 32 levels deep at most."""
    bad = encode(b'["salt","name",' + value + b"]")
    reason = R.LIMITS if len(bad) > 128 * 1024 else R.DISCLOSURE_JSON
    assert rejection(listing(bad)) is reason
    assert rejection(listing(*DISCLOSURES, bad)) is reason


@pytest.mark.parametrize(
    "text",
    [b"[", b"]", b'["s","n",1', b'["s","n",1]]', b'["s","n",1]x', b'["s","n",NaN]', b"abc",
     b'["s","n",1],["t","m",2]', b'["s","n",1]\x1e["t","m",2]', b'["s\x1e","n",1]', b"\x1e",
     b'["s","n",1]\x1e', b'\x1e["s","n",1]', b'["s","n","\xff"]', b'["s","n","\\udc00"]',
     b'["\\ud800","n",1]', b'["s","\\ud800",1]', b'\xef\xbb\xbf["s","n",1]'],
)  # fmt: skip
def test_json_texts(text):
    """Row 38: each disclosure is one whole JSON text, whatever stands beside it."""
    bad = encode(text)
    for sent in ([bad], [*DISCLOSURES, bad], [bad, *DISCLOSURES]):
        assert rejection(listing(*sent)) is R.DISCLOSURE_JSON


def test_two_halves_are_no_whole():
    """Row 38: two texts that would make sense if joined are refused."""
    for first, second in ((b'["s","n",', b"1]"), (b'["s","n",[1', b"2]]"), (b'["s","n","', b'"]')):
        assert rejection(listing(encode(first), encode(second))) is R.DISCLOSURE_JSON


def test_white_space():
    """Row 10: white space in and around a disclosure is fine; the digest is over the text."""
    spaced = encode(' \n[ "salt" ,\t"age_over_18" , true ]\r\n')
    assert check(listing(spaced, DISCLOSURES[0])).claims == {
        "age_over_18": True,
        "kyc_verified": CLAIMS["kyc_verified"],
    }


@pytest.mark.parametrize(
    "content",
    [
        [], ["s"], ["s", "n", 1, 2], "abc", {"0": "s", "1": "n", "2": 1}, {"a": 1, "b": 2}, None,
        True, 3, 1.5, [1, "n", 1], [None, "n", 1], [["s"], "n", 1], ["s", 1, 1], ["s", None, 1],
        ["s", ["n"], 1], ["s", {"n": 1}, 1], {}, "ab",
    ],
    ids=repr,
)  # fmt: skip
def test_shape(content):
    """Row 38: an array of exactly salt, name and value; what only unpacks to three is none."""
    text = encode(json.dumps(content))
    assert rejection(listing(text)) is R.DISCLOSURE_SHAPE
    assert rejection(listing(*DISCLOSURES, text)) is R.DISCLOSURE_SHAPE


@pytest.mark.parametrize("content", [["s", "n"], ["s", {"_sd": []}], [1, 2], ["s", True]])
def test_array_element(content):
    """Row 38: a disclosure of two elements is of an array element, which this profile has not."""
    assert rejection(listing(encode(content))) is R.DISCLOSURE_ARRAY_ELEMENT


@pytest.mark.parametrize("name", ["_sd", "...", "_sd_alg"])
def test_name(name):
    """Row 39: a claim cannot have a name that SD-JWT uses itself."""
    assert rejection(listing(disclose(name, "x"))) is R.DISCLOSURE_NAME
    assert rejection(listing(disclose(name, ["x"]), _sd_alg=ABSENT)) is R.DISCLOSURE_NAME


@pytest.mark.parametrize("name", [*payload(), "vct", "nbf", "extra"])
def test_collision_with_the_payload(name):
    """Row 39: a claim cannot have a name that the signed payload has."""
    if name.startswith("_"):
        return
    extra = {name: {"vct": "type", "nbf": 1, "extra": "signed"}.get(name, payload().get(name))}
    assert rejection(listing(disclose(name, "other"), **extra)) is R.DISCLOSURE_COLLISION


def test_collision_of_two_disclosures():
    """Row 39: two listed disclosures of one name contradict each other."""
    text = listing(disclose("age_over_18", False, "a"), disclose("age_over_18", True, "b"))
    assert rejection(text) is R.DISCLOSURE_COLLISION
    escaped = encode('["s","age\\u005fover_18",true]')
    assert rejection(listing(disclose("age_over_18", False), escaped)) is R.DISCLOSURE_COLLISION


@pytest.mark.parametrize("name", ["nbf", "iat", "cnf", "vct", "status"])
def test_validity_claims(name):
    """Row 40: what decides on validity cannot be disclosed where the payload left it out."""
    text = listing(disclose(name, 2**33), iat=ABSENT)
    assert rejection(text) is R.DISCLOSURE_NAME


@pytest.mark.parametrize(
    "value",
    [
        {"_sd": []}, {"_sd": ["x"]}, {"...": "x"}, [{"...": "x"}], {"a": [[{"b": {"_sd": 1}}]]},
        {"_sd_alg": "sha-256"},
    ],
    ids=repr,
)  # fmt: skip
def test_nested(value):
    """Row 41: no digests and placeholders inside a value."""
    assert rejection(listing(disclose("a", value))) is R.DISCLOSURE_NESTED
    assert rejection(listing(*DISCLOSURES, disclose("a", value))) is R.DISCLOSURE_NESTED


@pytest.mark.parametrize("value", ["_sd", "...", ["_sd", "..."], {"a_sd": "_sd", "....": 1}])
def test_only_member_names_nest(value):
    """Row 41: the same text as a value, or as a part of a name, is harmless."""
    verified = check(listing(disclose("a", value)))
    assert verified.claims_as_json() == {"a": value}


def test_any_subset_in_any_order():
    """Row 42: what is left out is not claimed; the order is free."""
    pairs = list(zip(CLAIMS.items(), DISCLOSURES, strict=True))
    for size in range(len(pairs) + 1):
        for chosen in itertools.permutations(pairs, size):
            claims, sent = dict(pair[0] for pair in chosen), [pair[1] for pair in chosen]
            assert check(credential(disclosures=sent)).claims == claims


def test_decoys():
    """Row 42: digests of nothing are ignored, of whatever text."""
    decoys = [digest("decoy"), "", "not a digest", "é", "😀"]
    assert check(credential(_sd=[*decoys, *payload()["_sd"]])).claims == CLAIMS


@pytest.mark.parametrize(
    "value",
    [True, False, None, 0, -1, 1.5, 1e100, 10**40, "", "😀 \u0000 é \U0010ffff", "\ud83d\ude00"],
    ids=ascii,
)
def test_scalar_values(value):
    """Row 43: a value is exactly what the JSON says, type included."""
    expected = "😀" if value == "\ud83d\ude00" else value
    claimed = check(listing(disclose("a", value))).claims["a"]
    assert claimed == expected
    assert type(claimed) is type(expected)


@pytest.mark.parametrize("value", [[], {}, [1, [2, {"a": [None]}]], {"": {"b": [True, 1.5, "x"]}}])
def test_container_values(value):
    """Row 43: objects and arrays come out whole, and back to JSON unchanged."""
    assert check(listing(disclose("a", value))).claims_as_json() == {"a": value}


def test_depth_of_a_value():
    """Row 9: with the array around it a value may reach the 32nd level, not the next."""
    deep = json.loads("[" * 31 + "]" * 31)
    assert check(listing(disclose("a", deep))).claims_as_json() == {"a": deep}
    assert rejection(listing(disclose("a", [deep]))) is R.DISCLOSURE_JSON


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_that_the_parser_would_refuse(opening):
    """Row 9: nesting beyond what Python's parser can follow is a rejection here as well."""
    deep = encode('["s","n",' + opening * 15_000)
    assert rejection(listing(deep)) is R.DISCLOSURE_JSON
    assert rejection(listing(*DISCLOSURES, deep)) is R.DISCLOSURE_JSON


def test_many():
    """Row 2: a hundred disclosures are no trouble."""
    claims = {f"claim-{number}": {"n": [number]} for number in range(100)}
    text = listing(*(disclose(name, value) for name, value in claims.items()))
    assert check(text).claims_as_json() == claims


def test_claim_names_are_free():
    """Row 44: any other name may be claimed, the empty one included, and nothing is added."""
    for name in ("", "é", "a b", "__proto__", "sd", "jti", "Iss", "claims"):
        assert check(listing(disclose(name, 1))).claims == {name: 1}
