"""``verify``: each rule of the checklist, with everything that breaks it in one place."""

import itertools
import json
import logging
import pickle
import string
import traceback
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_identity.credentials import (
    KeySet,
    RejectionReason,
    VerifiedCredential,
    verify,
)
from django_identity.exceptions import CredentialRejected, IdentityError
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    NOW,
    OTHER_KEY,
    SUBJECT,
    check,
    credential,
    digest,
    disclose,
    encode,
    header,
    join,
    listing,
    payload,
    raw_signature,
    rejection,
    token,
    written,
)
from tests.credentials.signed_vectors import ACCEPTED, DISCLOSED, PAYLOAD
from tests.credentials.vectors import FORM, HEADER, SIGNATURES, VALID, with_signature
from tests.example_counts import examples
from tests.test_strict_json import WRITTEN

R = RejectionReason


@pytest.mark.parametrize(
    ("reason", "texts", "asked"),
    [*FORM, *HEADER, *SIGNATURES, *PAYLOAD, *DISCLOSED],
)
def test_a_credential_is_rejected_for_this_reason(reason, texts, asked):
    assert texts
    found = dict(enumerate(rejection(text, **asked) for text in texts))
    assert {place: other for place, other in found.items() if other is not reason} == {}


def test_a_credential_that_keeps_every_rule_is_accepted():
    """What stands beside each rule: the claims come out as they went in, types included."""
    for text, claims in ACCEPTED:
        found = check(text).claims_as_json()
        assert found == claims
        assert [*map(type, found.values())] == [*map(type, claims.values())]


def test_whom_a_valid_credential_names():
    verified = check(VALID, subject=SUBJECT)
    assert verified.subject == SUBJECT
    assert verified.environment == "test"
    assert verified.kid == "key-1"
    assert verified.issued_at == NOW - timedelta(seconds=60)
    assert verified.expires_at == NOW + timedelta(days=1)
    assert verified.expires_at.tzinfo is verified.issued_at.tzinfo is UTC

    assert check(credential(sub="Ọlá 😀")).subject == "Ọlá 😀"
    half = check(credential(exp=EPOCH_NOW + 0.5)).expires_at
    assert half == NOW + timedelta(seconds=0.5)
    assert check(credential(iat=ABSENT)).issued_at is None


def test_nothing_is_proven_by_having_been_seen():
    """A header names a key and nothing else; what was accepted once is checked all the same."""
    _, _, rest = VALID.partition(".")
    for _ in range(2):
        assert check(VALID)
        assert rejection(f"{encode(header(x=1))}.{rest}") is R.SIGNATURE
        assert rejection(VALID, keys=KeySet.from_jwks({"keys": []})) is R.KEY
        assert rejection(f"{encode(header(typ='JWT'))}.{rest}") is R.HEADER_TYP
        assert rejection(VALID, now=NOW + timedelta(days=2)) is R.PAYLOAD_EXPIRED
        assert rejection(VALID, audience="client-2") is R.PAYLOAD_AUD


def signatures(bent=str):
    """Texts of a token, each with the signature of what is made of it."""
    for number in itertools.count():
        text = f"{encode(header())}.{encode(payload(jti=number))}"
        yield text, raw_signature(bent(text))


@pytest.mark.parametrize("place", [0, 32])
def test_signatures_with_leading_zeros_verify(place):
    """Row 22: short numbers keep their 32 octets, and verify."""
    text, signature = next(each for each in signatures() if each[1][place] == 0)
    assert check(with_signature(signature, text)).claims == CLAIMS


def test_a_signature_is_not_filled_up_or_cut_down():
    """Row 21: 63 and 66 octets, where the split at 32 would find a good r and s.

    The issuer signed the text that stands before the last 86 characters, not before the last dot.
    """
    before = signatures(lambda text: text[:-2])
    text, signature = next(each for each in before if each[1][32] == 0)
    assert (
        rejection(with_signature(signature[:32] + signature[33:], text)) is R.SIGNATURE
    )
    # What is beyond the 86 characters spells "A", so the first six bits are zero.
    beyond = signatures(lambda text: f"{text}.A")
    text, signature = next(each for each in beyond if each[1][0] < 4)
    long = signature[:32] + bytes(2) + signature[32:]
    assert rejection(with_signature(long, text)) is R.SIGNATURE


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_the_leeway_is_for_clocks_that_differ(name):
    """Row 31: and lets no time in that is no date."""
    assert check(credential(**{name: EPOCH_NOW + 29.5}), leeway=30).claims == CLAIMS
    last_second = datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC)
    text = credential(**{"iat": 1, name: 253_402_300_805, "exp": 253_402_300_799})
    assert rejection(text, now=last_second, leeway=30).value == f"payload.{name}"


def test_any_subset_in_any_order():
    """Row 42: what is left out is not claimed; the order is free."""
    pairs = [*zip(CLAIMS.items(), DISCLOSURES, strict=True)]
    for size in range(len(pairs) + 1):
        for chosen in itertools.permutations(pairs, size):
            claims = dict(claim for claim, _text in chosen)
            sent = [text for _claim, text in chosen]
            assert check(credential(disclosures=sent)).claims == claims


# What a caller relies on


def test_a_credential_is_judged_now_or_at_the_time_that_is_given():
    """By default the time of the call; an aware time means the same instant in every zone."""
    assert check(credential(exp=2**33, iat=1), now=None).claims == CLAIMS
    assert rejection(credential(exp=1_700_000_000), now=None) is R.PAYLOAD_EXPIRED
    text = credential(exp=EPOCH_NOW + 1)
    here = NOW.astimezone(timezone(timedelta(hours=1)))
    assert check(text, now=here) == check(text)
    assert rejection(text, now=here + timedelta(seconds=1)) is R.PAYLOAD_EXPIRED


def test_a_callers_mistake_is_no_rejection():
    """No text, a naive time, a leeway that is no duration, expectations that could be swapped."""
    for other in (None, credential().encode(), bytearray(b"a"), 1, [credential()]):
        with pytest.raises(TypeError):
            check(other)
    with pytest.raises(ValueError, match="aware"):
        check(credential(), now=datetime(2026, 11, 20, 12, 0))  # noqa: DTZ001  the mistake itself
    for leeway in (-1, float("nan"), float("inf"), -0.001):
        with pytest.raises(ValueError, match="leeway"):
            check(credential(), leeway=leeway)
    with pytest.raises(TypeError):
        verify(credential(), None, "issuer", "audience", "test")


@pytest.mark.parametrize("name", ["issuer", "audience", "environment"])
def test_no_expectation_matches_nothing(name):
    """An expectation left empty by mistake closes, whatever the credential lacks."""
    member = {"issuer": "iss", "audience": "aud"}.get(name, name)
    for value in (None, "", [], ["test"]):
        text = credential(**{member: value})
        assert rejection(text, **{name: None}).value == f"payload.{member}"


REJECTED = {
    "cut off": credential()[:-1],
    "not ASCII": credential() + "é",
    "no header": written("{"),
    "another key": written(key=OTHER_KEY),
    "no UTF-8": written(body=b'{"sub":"\xff"}'),
    "a NUL": credential(sub="somebody\0"),
    "not listed": credential(_sd=[]),
    "a broken disclosure": credential(disclosures=[encode(b"[\xff]")]),
}


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED)
def test_rejections_hold_nothing_of_the_credential(text, caplog):
    """Message, repr, chain and frames of a rejection have no part of the text, nor does the log."""
    with caplog.at_level(logging.DEBUG), pytest.raises(CredentialRejected) as caught:
        check(text, subject=SUBJECT)
    error = caught.value
    assert isinstance(error, IdentityError)
    assert str(error) == error.reason.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not caplog.text
    ours = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [frame for frame in ours if "/django_identity/" in frame.f_code.co_filename]
    assert [frame.f_code.co_name for frame in ours] == ["verify"]
    shown = repr(ours[0].f_locals)
    assert SUBJECT not in shown
    assert text not in shown


# What it returns: immutable, and discreet


NESTED = {"object": {"list": [1, {"a": True}], "text": "x"}, "list": [[], {}]}


@pytest.fixture
def verified():
    return check(listing(*(disclose(name, value) for name, value in NESTED.items())))


def test_nothing_of_it_can_be_changed(verified):
    """Row 43: no attribute can be set or deleted, and the claims are immutable at every depth."""
    for name in (*VerifiedCredential.__slots__, "claims", "exp", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(verified, name, "other")
        with pytest.raises((AttributeError, TypeError)):
            delattr(verified, name)
    claims = verified.claims
    for change in (
        lambda: claims.__setitem__("object", 1),
        lambda: claims.pop("object"),
        lambda: claims["object"].__setitem__("text", "y"),
        lambda: claims["object"]["list"].append(1),
        lambda: claims["object"]["list"].__setitem__(0, 2),
        lambda: claims["object"]["list"][1].__setitem__("a", False),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()

    assert verified.claims_as_json() == NESTED


def test_claims_are_plain_json_and_the_credential_cannot_be_pickled(verified):
    """Plain JSON comes fresh each time; the credential itself goes into no cache and no task."""
    with pytest.raises(TypeError):
        pickle.dumps(verified)
    plain = verified.claims_as_json()
    assert json.loads(json.dumps(plain)) == NESTED
    plain["object"]["list"].append(2)
    assert verified.claims_as_json() == NESTED


def test_the_repr_shows_neither_values_nor_the_subject():
    shown = repr(check(credential()))
    assert [text for text in (SUBJECT, "NG", "vendor", "True") if text in shown] == []
    assert "key-1" in shown
    assert "country_resident" in shown


# Laws that hold for every credential, found out by trying many


tries = examples(few=20, many=1000)
ALPHABET = string.ascii_letters + string.digits + "-_"
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_a_change_at_every_place_is_rejected():
    """There is no place where a character does not matter."""
    for place, old in enumerate(VALID):
        for new in {"A", "~"} - {old}:
            assert rejection(VALID[:place] + new + VALID[place + 1 :])


@tries
@given(ANY_TEXT | st.text(ALPHABET + ".~") | st.lists(st.text(ALPHABET)).map(".~".join))
def test_any_text_is_rejected_as_a_credential(text):
    assert rejection(text)


JSON_TEXTS = st.binary() | WRITTEN


@tries
@given(st.none() | JSON_TEXTS, st.none() | JSON_TEXTS, st.lists(JSON_TEXTS, max_size=3))
def test_any_signed_content_is_verified_or_rejected(head, body, disclosed):
    """Whatever the issuer signs never raises anything but CredentialRejected."""
    disclosures = [text for content in disclosed if (text := encode(content))]
    listed = payload(_sd=list({digest(text) for text in disclosures}))
    with suppress(CredentialRejected):
        check(join(token(head, listed if body is None else body), disclosures))
