"""Each rule of the checklist, with everything that breaks it in one place."""

import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest

from django_identity.credentials import KeySet, RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    NOW,
    ORDER,
    SUBJECT,
    b64,
    check,
    credential,
    encode,
    header,
    join,
    payload,
    raw_signature,
    rejection,
    token,
)
from tests.credentials.signed_vectors import ACCEPTED, DISCLOSED, PAYLOAD
from tests.credentials.vectors import (
    FORM,
    GOOD_R,
    GOOD_S,
    HEADER,
    HEADER_TEXT,
    SIGNATURES,
    SIGNED,
    VALID,
    Row,
    headed,
    pair,
)

R = RejectionReason


@pytest.mark.parametrize("row", [*FORM, *HEADER, *SIGNATURES, *PAYLOAD, *DISCLOSED], ids=str)
def test_refused(row: Row) -> None:
    """For this reason and no other."""
    assert row.texts
    reasons = [rejection(text, **row.asked) for text in row.texts]
    others = {place: found for place, found in enumerate(reasons) if found is not row.reason}
    assert others == {}


def test_accepted() -> None:
    """What stands beside each rule: the claims come out as they went in, types included."""
    for text, claims in ACCEPTED:
        found = check(text).claims_as_json()
        assert found == claims
        assert [*map(type, found.values())] == [*map(type, claims.values())]


def test_whom_a_valid_credential_names() -> None:
    verified = check(VALID, subject=SUBJECT)
    assert (verified.subject, verified.environment, verified.kid) == (SUBJECT, "test", "key-1")
    assert check(credential(sub="Ọlá 😀")).subject == "Ọlá 😀"
    assert verified.issued_at == NOW - timedelta(seconds=60)
    assert verified.expires_at == NOW + timedelta(days=1)
    assert verified.expires_at.tzinfo is verified.issued_at.tzinfo is UTC
    assert check(credential(iat=ABSENT)).issued_at is None


@pytest.mark.parametrize("text", [None, VALID.encode(), bytearray(b"a"), 1, [VALID]], ids=type)
def test_no_text_is_the_callers_mistake(text: object) -> None:
    """Row 1: what is not a str is a TypeError."""
    with pytest.raises(TypeError):
        check(text)  # type: ignore[arg-type]


def test_what_a_header_may_say() -> None:
    """Rows 10 and 15: white space and other members are fine."""
    spaced = (
        f" \t\r\n{HEADER_TEXT} \n",
        json.dumps(header(), indent=4),
        HEADER_TEXT.replace(" ", ""),
    )
    for text in (*(join(token(head), DISCLOSURES) for head in spaced),
                 headed(x={"y": [1]}, cty="json", b64=False)):  # fmt: skip
        assert check(text).claims == CLAIMS


def test_a_header_proves_nothing_by_having_been_seen() -> None:
    """A header names a key and nothing else: each signature under it is checked."""
    _, _, rest = VALID.partition(".")
    for _ in range(2):
        assert check(VALID)
        assert rejection(f"{encode(header(x=1))}.{rest}") is R.SIGNATURE
        assert rejection(VALID, keys=KeySet.from_jwks({"keys": []})) is R.KEY
        assert rejection(f"{encode(header(typ='JWT'))}.{rest}") is R.HEADER_TYP


def test_both_halves_of_s() -> None:
    """Row 22: s and n - s verify alike; nothing rests on the signature being unique."""
    other = pair(GOOD_R, ORDER - GOOD_S)
    assert check(join(f"{SIGNED}.{b64(other)}", DISCLOSURES)).claims == CLAIMS


def test_leading_zeros() -> None:
    """Row 22: short numbers keep their 32 octets, and verify."""
    seen = set()
    for number in itertools.count():
        body = f"{encode(header())}.{encode(payload(jti=number))}"
        signature = raw_signature(body)
        short = (signature[0] == 0, signature[32] == 0)
        if any(short) and short not in seen:
            seen.add(short)
            assert check(join(f"{body}.{b64(signature)}", DISCLOSURES)).claims == CLAIMS
        if {(True, False), (False, True)} <= seen:
            return


def test_a_signature_is_not_filled_up_or_cut_down() -> None:
    """Row 21: 63 and 66 octets, where the split at 32 would find a good r and s.

    The issuer signed the text that stands before the last 86 characters, not before the last dot.
    """
    for number in itertools.count():
        body = f"{encode(header())}.{encode(payload(jti=number))}"
        signature = raw_signature(body[:-2])
        if signature[32] == 0:
            short = b64(signature[:32] + signature[33:])
            assert rejection(join(f"{body}.{short}", DISCLOSURES)) is R.SIGNATURE
            break
    for number in itertools.count():
        body = f"{encode(header())}.{encode(payload(jti=number))}"
        signature = raw_signature(f"{body}.A")
        long = b64(signature[:32] + bytes(2) + signature[32:])
        if long[0] == "A":
            assert rejection(join(f"{body}.{long}", DISCLOSURES)) is R.SIGNATURE
            break


@pytest.mark.parametrize("life", [0.001, 0.5, 1, 10**9, 253_402_300_799 - EPOCH_NOW])
def test_before_its_expiry_it_is_not_expired(life: float) -> None:
    """Row 30: fractions of a second included."""
    assert check(credential(exp=EPOCH_NOW + life)).expires_at - NOW == timedelta(seconds=life)


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_the_leeway_is_for_clocks_that_differ(name: str) -> None:
    """Row 31: and lets no time in that is no date."""
    assert check(credential(**{name: EPOCH_NOW + 29.5}), leeway=30).claims == CLAIMS
    last_second = datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC)
    text = credential(**{"iat": 1, name: 253_402_300_805, "exp": 253_402_300_799})
    assert rejection(text, now=last_second, leeway=30).value == f"payload.{name}"


def test_any_subset_in_any_order() -> None:
    """Row 42: what is left out is not claimed; the order is free."""
    pairs = list(zip(CLAIMS.items(), DISCLOSURES, strict=True))
    for size in range(len(pairs) + 1):
        for chosen in itertools.permutations(pairs, size):
            claims, sent = dict(each[0] for each in chosen), [each[1] for each in chosen]
            assert check(credential(disclosures=sent)).claims == claims
