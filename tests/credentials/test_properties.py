"""Laws that hold for every credential, found out by trying many (hypothesis)."""

import json
import string

from hypothesis import given
from hypothesis import strategies as st

from django_identity.credentials import RejectionReason
from django_identity.exceptions import CredentialRejected
from tests.credentials.issuer import (
    check,
    credential,
    digest,
    encode,
    join,
    payload,
    rejection,
    token,
)
from tests.example_counts import examples
from tests.test_strict_json import VALUES

R = RejectionReason
tries = examples(few=20, many=1000)
ALPHABET = string.ascii_letters + string.digits + "-_"
VALID = credential()
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def outcome(text):
    """What ``verify`` makes of ``text``; anything else it raises fails the test."""
    try:
        return check(text)
    except CredentialRejected as rejected:
        return rejected.reason


def test_a_change_at_every_place_is_rejected():
    """There is no place where a character does not matter."""
    for place, old in enumerate(VALID):
        for new in {"A", "~"} - {old}:
            assert rejection(VALID[:place] + new + VALID[place + 1 :])


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
