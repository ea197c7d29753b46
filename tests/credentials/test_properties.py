"""Laws that hold for every credential, found out by trying many (hypothesis)."""

from __future__ import annotations

import json
import string

from hypothesis import assume, given
from hypothesis import strategies as st

from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential
from django_identity.exceptions import CredentialRejected, MalformedAnswer
from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    SUBJECT,
    b64,
    check,
    credential,
    digest,
    disclose,
    encode,
    header,
    join,
    jwk,
    listing,
    payload,
    raw_signature,
    rejection,
    token,
)
from tests.effort import effort
from tests.test_strict_json import VALUES

R = RejectionReason
tries = effort(few=40, many=1000)
ALPHABET = string.ascii_letters + string.digits + "-_"
VALID = credential()
TOKEN, *_ = VALID.split("~")
HEAD, BODY, SIGNATURE = TOKEN.split(".")
ANY_TEXT = st.text(st.characters(exclude_categories=()))
HEADER_REASONS = {reason for reason in R if reason.value.startswith("header.")} | {R.KEY}


def outcome(text: str) -> VerifiedCredential | RejectionReason:
    """What ``verify`` makes of ``text``; anything else it raises fails the test."""
    try:
        return check(text)
    except CredentialRejected as rejected:
        return rejected.reason


def expected_of_change(place: int, new: str) -> set[RejectionReason]:
    """What changing the character at ``place`` to ``new`` may lead to."""
    if new not in ALPHABET + ".~":
        return {R.FORMAT_CHARSET}
    old = VALID[place]
    if place == len(VALID) - 1:
        return {R.FORMAT_TILDE}
    if new == "~" and len(TOKEN) - len(SIGNATURE) <= place < len(TOKEN):
        return {R.SIGNATURE, R.ENCODING, R.FORMAT_SEGMENTS, R.FORMAT_DISCLOSURE}
    if old == "." or (new in ".~" and place < len(TOKEN)):
        return {R.FORMAT_SEGMENTS}
    if new == ".":
        return {R.FORMAT_DISCLOSURE} if place != len(TOKEN) else {R.FORMAT_SEGMENTS}
    bent = {R.ENCODING}
    if place == len(TOKEN):
        return {R.SIGNATURE} | bent
    if new == "~":
        return {R.DISCLOSURE_UNLISTED, R.FORMAT_DISCLOSURE} | bent
    if old != "~" and VALID[place + 1] not in ".~":
        bent = set()
    if place > len(TOKEN):
        return {R.DISCLOSURE_UNLISTED} | bent
    if place > len(HEAD):
        return {R.SIGNATURE} | bent
    return {R.SIGNATURE} | HEADER_REASONS | bent


@tries
@given(
    st.integers(0, len(VALID) - 1),
    st.sampled_from(ALPHABET + ".~") | st.characters(exclude_categories=()),
)
def test_any_changed_character(place, new):
    """A credential with one character changed is rejected for the reason of that place."""
    assume(new != VALID[place])
    changed = VALID[:place] + new + VALID[place + 1 :]
    assert rejection(changed) in expected_of_change(place, new)


def test_every_place_changed():
    """There is no place where a character does not matter."""
    for place, old in enumerate(VALID):
        for new in ("A", "_", ".", "~", "="):
            if new != old:
                changed = VALID[:place] + new + VALID[place + 1 :]
                assert rejection(changed) in expected_of_change(place, new)


@tries
@given(st.integers(0, len(VALID) - 1))
def test_any_lost_character(place):
    """A credential with one character missing is rejected."""
    rejection(VALID[:place] + VALID[place + 1 :])


@tries
@given(st.permutations(list(CLAIMS)), st.integers(0, len(CLAIMS)))
def test_any_subset_in_any_order(names, count):
    """Any disclosures in any order are accepted, with exactly their claims."""
    by_name = dict(zip(CLAIMS, DISCLOSURES, strict=True))
    chosen = names[:count]
    verified = check(credential(disclosures=[by_name[name] for name in chosen]))
    assert verified.claims == {name: CLAIMS[name] for name in chosen}


@tries
@given(st.permutations(DISCLOSURES), st.integers(1, len(DISCLOSURES)), st.data())
def test_any_doubled_disclosure(disclosures, count, data):
    """A disclosure sent twice, wherever, is refused as repeated."""
    sent = disclosures[:count]
    sent.insert(data.draw(st.integers(0, count)), data.draw(st.sampled_from(sent)))
    assert rejection(credential(disclosures=sent)) is R.DISCLOSURE_REPEAT


@tries
@given(st.text(min_size=1), VALUES, st.integers(0, len(DISCLOSURES)))
def test_any_foreign_disclosure(name, value, place):
    """A disclosure that the issuer did not list is refused, whatever it says."""
    foreign = disclose(name, value)
    assume(foreign not in DISCLOSURES)
    sent = [*DISCLOSURES[:place], foreign, *DISCLOSURES[place:]]
    assert rejection(credential(disclosures=sent)) is R.DISCLOSURE_UNLISTED


@tries
@given(st.sampled_from(list(CLAIMS)), VALUES)
def test_any_altered_disclosure(name, value):
    """A listed disclosure with another value, and its own salt, is not listed any more."""
    assume(value != CLAIMS[name] or type(value) is not type(CLAIMS[name]))
    sent = [disclose(each, value if each == name else CLAIMS[each]) for each in CLAIMS]
    assume(sent != DISCLOSURES)
    assert rejection(credential(disclosures=sent)) is R.DISCLOSURE_UNLISTED


PARTIES = ["iss", "aud", "environment", "sub"]


@tries
@given(st.lists(st.sampled_from(PARTIES), min_size=2, max_size=2, unique=True))
def test_any_two_parties_swapped(names):
    """Two members of the payload swapped are refused: unsigned as forged, signed as wrong."""
    one, two = sorted(names, key=PARTIES.index)
    members = payload()
    swapped = payload(**{one: members[two], two: members[one]})
    assert rejection(join(token(body=swapped), DISCLOSURES), subject=SUBJECT) is R(f"payload.{one}")
    forged = f"{HEAD}.{encode(swapped)}.{SIGNATURE}"
    assert rejection(join(forged, DISCLOSURES)) is R.SIGNATURE


@tries
@given(st.sampled_from(PARTIES), VALUES)
def test_any_other_party(name, value):
    """Another value of any type for issuer, audience, environment or subject is refused."""
    assume(value != payload()[name])
    text = credential(**{name: value})
    expected = {R(f"payload.{name}"), R.PAYLOAD_NESTED}
    assert rejection(text, subject=SUBJECT) in expected


@tries
@given(st.permutations(["alg", "typ", "kid"]))
def test_any_swapped_header(names):
    """The header's members swapped are refused by the first that is wrong, signed or not."""
    members = header()
    swapped = {name: members[other] for name, other in zip(members, names, strict=True)}
    assume(swapped != members)
    first = next(name for name in members if swapped[name] != members[name])
    expected = R.KEY if first == "kid" else R(f"header.{first}")
    assert rejection(join(token(swapped), DISCLOSURES)) is expected
    assert rejection(join(f"{encode(swapped)}.{BODY}.{SIGNATURE}", DISCLOSURES)) is expected


@tries
@given(VALUES)
def test_any_expiry(value):
    """Only a number after now is an expiry to come."""
    text = credential(exp=value)
    if type(value) in (int, float) and EPOCH_NOW < value <= 253_402_300_799:
        assert check(text).exp == value
    else:
        assert rejection(text) in {R.PAYLOAD_EXP, R.PAYLOAD_EXPIRED, R.PAYLOAD_NESTED}


@tries
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_any_claims(claims):
    """Whatever is disclosed comes out as it went in, or is refused for its names."""
    text = listing(*(disclose(name, value, "salt") for name, value in claims.items()))
    result = outcome(text)
    if isinstance(result, VerifiedCredential):
        assert repr(result.claims_as_json()) == repr(claims)
    else:
        assert result in {R.DISCLOSURE_NAME, R.DISCLOSURE_COLLISION, R.DISCLOSURE_NESTED}


@tries
@given(ANY_TEXT | st.text(ALPHABET + ".~") | st.lists(st.text(ALPHABET)).map(".~".join))
def test_any_text(text):
    """Arbitrary text never raises anything but CredentialRejected, and never verifies."""
    assert isinstance(outcome(text), RejectionReason)


JSON_TEXTS = st.binary() | VALUES.map(lambda value: json.dumps(value).encode())


@tries
@given(st.none() | JSON_TEXTS, st.none() | JSON_TEXTS, st.lists(JSON_TEXTS, max_size=3))
def test_any_signed_content(head, body, disclosed):
    """Whatever the issuer signs never raises anything but CredentialRejected."""
    disclosures = [text for content in disclosed if (text := encode(content))]
    listed = payload(_sd=list({digest(text) for text in disclosures}))
    signed = (
        f"{encode(header() if head is None else head)}.{encode(listed if body is None else body)}"
    )
    outcome(join(f"{signed}.{b64(raw_signature(signed))}", disclosures))


@tries
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(payload(), VALUES)))
def test_any_payload_members(members):
    """Members of any value never raise anything but CredentialRejected."""
    outcome(credential(**members))


@tries
@given(VALUES | st.fixed_dictionaries({"keys": st.lists(VALUES)}))
def test_any_key_set(document):
    """Any JSON is a key set or malformed."""
    try:
        keys = KeySet.from_jwks(document)
    except MalformedAnswer:
        return
    assert len(keys) == 0


@tries
@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*jwk(), "use", "alg", "key_ops"], VALUES)))
def test_any_key(members):
    """A key with any members is used or left out, never a crash."""
    assert len(KeySet.from_jwks({"keys": [jwk() | members]})) <= 1
