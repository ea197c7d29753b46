"""Laws that hold for every credential, found out by trying many (hypothesis)."""

import json
import string

from hypothesis import assume, given
from hypothesis import strategies as st

from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential
from django_identity.exceptions import CredentialRejected, MalformedAnswer
from tests.credentials.issuer import (
    check,
    credential,
    digest,
    disclose,
    encode,
    join,
    listing,
    payload,
    rejection,
    token,
)
from tests.effort import effort
from tests.test_strict_json import VALUES

R = RejectionReason
tries = effort(few=20, many=1000)
ALPHABET = string.ascii_letters + string.digits + "-_"
VALID = credential()
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def outcome(text: str) -> VerifiedCredential | RejectionReason:
    """What ``verify`` makes of ``text``; anything else it raises fails the test."""
    try:
        return check(text)
    except CredentialRejected as rejected:
        return rejected.reason


@tries
@given(
    st.integers(0, len(VALID) - 1),
    st.sampled_from(ALPHABET + ".~") | st.characters(exclude_categories=()),
)
def test_any_changed_character_is_rejected(place, new):
    """A credential with one character changed is rejected."""
    assume(new != VALID[place])
    assert rejection(VALID[:place] + new + VALID[place + 1 :])


def test_a_change_at_every_place_is_rejected():
    """There is no place where a character does not matter."""
    for place, old in enumerate(VALID):
        for new in {"A", "~"} - {old}:
            assert rejection(VALID[:place] + new + VALID[place + 1 :])


@tries
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_any_claims_come_out_as_they_went_in(claims):
    """Whatever is disclosed comes out as it went in, or is refused for its names."""
    text = listing(*(disclose(name, value, "salt") for name, value in claims.items()))
    result = outcome(text)
    if isinstance(result, VerifiedCredential):
        assert repr(result.claims_as_json()) == repr(claims)
    else:
        assert result in {
            R.DISCLOSURE_NAME,
            R.DISCLOSURE_COLLISION,
            R.DISCLOSURE_NESTED,
        }


@tries
@given(ANY_TEXT | st.text(ALPHABET + ".~") | st.lists(st.text(ALPHABET)).map(".~".join))
def test_any_text_is_rejected_as_a_credential(text):
    """Arbitrary text never raises anything but CredentialRejected, and never verifies."""
    assert isinstance(outcome(text), RejectionReason)


JSON_TEXTS = st.binary() | VALUES.map(lambda value: json.dumps(value).encode())


@tries
@given(st.none() | JSON_TEXTS, st.none() | JSON_TEXTS, st.lists(JSON_TEXTS, max_size=3))
def test_any_signed_content_is_verified_or_rejected(head, body, disclosed):
    """Whatever the issuer signs never raises anything but CredentialRejected."""
    disclosures = [text for content in disclosed if (text := encode(content))]
    listed = payload(_sd=list({digest(text) for text in disclosures}))
    outcome(join(token(head, listed if body is None else body), disclosures))


@tries
@given(VALUES | st.fixed_dictionaries({"keys": st.lists(VALUES)}))
def test_any_json_is_a_key_set_or_malformed(document):
    """Any JSON is a key set or malformed."""
    try:
        keys = KeySet.from_jwks(document)
    except MalformedAnswer:
        return
    assert len(keys) == 0
