"""Each rule of the checklist, with everything that breaks it in one place."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from django_identity.credentials import KeySet, RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    NOW,
    SUBJECT,
    check,
    credential,
    encode,
    header,
    payload,
    raw_signature,
    rejection,
)
from tests.credentials.signed_vectors import ACCEPTED, DISCLOSED, PAYLOAD
from tests.credentials.vectors import FORM, HEADER, SIGNATURES, VALID, Row, with_signature

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
    assert check(credential(exp=EPOCH_NOW + 0.5)).expires_at == NOW + timedelta(seconds=0.5)
    assert check(credential(iat=ABSENT)).issued_at is None


def test_a_header_proves_nothing_by_having_been_seen() -> None:
    """A header names a key and nothing else: each signature under it is checked."""
    _, _, rest = VALID.partition(".")
    for _ in range(2):
        assert check(VALID)
        assert rejection(f"{encode(header(x=1))}.{rest}") is R.SIGNATURE
        assert rejection(VALID, keys=KeySet.from_jwks({"keys": []})) is R.KEY
        assert rejection(f"{encode(header(typ='JWT'))}.{rest}") is R.HEADER_TYP


def signatures(bent: Callable[[str], str] = str) -> Iterator[tuple[str, bytes]]:
    """Texts of a token, each with the signature of what is made of it."""
    for number in itertools.count():
        text = f"{encode(header())}.{encode(payload(jti=number))}"
        yield text, raw_signature(bent(text))


@pytest.mark.parametrize("place", [0, 32])
def test_leading_zeros(place: int) -> None:
    """Row 22: short numbers keep their 32 octets, and verify."""
    text, signature = next(each for each in signatures() if each[1][place] == 0)
    assert check(with_signature(signature, text)).claims == CLAIMS


def test_a_signature_is_not_filled_up_or_cut_down() -> None:
    """Row 21: 63 and 66 octets, where the split at 32 would find a good r and s.

    The issuer signed the text that stands before the last 86 characters, not before the last dot.
    """
    before = signatures(lambda text: text[:-2])
    text, signature = next(each for each in before if each[1][32] == 0)
    assert rejection(with_signature(signature[:32] + signature[33:], text)) is R.SIGNATURE
    # What is beyond the 86 characters spells "A", so the first six bits are zero.
    beyond = signatures(lambda text: f"{text}.A")
    text, signature = next(each for each in beyond if each[1][0] < 4)
    long = signature[:32] + bytes(2) + signature[32:]
    assert rejection(with_signature(long, text)) is R.SIGNATURE


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
