"""``verify``: the signature (rows 20 to 24 of the checklist), and what a caller relies on."""

from __future__ import annotations

import logging
import traceback
from datetime import datetime, timedelta, timezone

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.credentials import RejectionReason
from django_identity.exceptions import CredentialRejected, IdentityError
from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    KEY,
    NOW,
    ORDER,
    OTHER_KEY,
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

R = RejectionReason
SIGNED = token().rpartition(".")[0]
GOOD = raw_signature(SIGNED)
DER = KEY.sign(SIGNED.encode(), ec.ECDSA(hashes.SHA256()))


def split(signature: bytes) -> tuple[int, int]:
    return int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")


def pair(r: int, s: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


GOOD_R, GOOD_S = split(GOOD)
BAD_SIGNATURES = {
    "DER": DER,
    "63": GOOD[:-1],
    "63, first lost": GOOD[1:],
    "65": GOOD + b"\0",
    "65, zero first": b"\0" + GOOD,
    "66": GOOD[:32] + b"\0" + GOOD[32:] + b"\0",
    "66, padded like P-521": b"\0" + GOOD[:32] + b"\0" + GOOD[32:],
    "96": GOOD[:32].rjust(48, b"\0") + GOOD[32:].rjust(48, b"\0"),
    "1": b"\0",
    "hex": GOOD.hex().encode(),
    "zeros": bytes(64),
    "r zero": pair(0, GOOD_S),
    "s zero": pair(GOOD_R, 0),
    "ones": b"\xff" * 64,
    "r is n": pair(ORDER, GOOD_S),
    "s is n": pair(GOOD_R, ORDER),
    "both n": pair(ORDER, ORDER),
    "n - r": pair(ORDER - GOOD_R, GOOD_S),
    "r + 1": pair(GOOD_R + 1, GOOD_S),
    "r is 1": pair(1, GOOD_S),
    "both 1": pair(1, 1),
    "swapped": GOOD[32:] + GOOD[:32],
    "little-endian": GOOD[:32][::-1] + GOOD[32:][::-1],
    "another key": raw_signature(SIGNED, OTHER_KEY),
    "another text": raw_signature(SIGNED + "A"),
    "twice": GOOD + GOOD,
}


@pytest.mark.parametrize("signature", BAD_SIGNATURES.values(), ids=BAD_SIGNATURES)
def test_signature(signature):
    """Rows 21 and 22: 64 octets of r and s within the group's order, of this text by this key."""
    assert rejection(join(f"{SIGNED}.{b64(signature)}", DISCLOSURES)) is R.SIGNATURE


def test_both_halves_of_s():
    """Row 22: s and n - s verify alike; nothing rests on the signature being unique."""
    other = pair(GOOD_R, ORDER - GOOD_S)
    assert check(join(f"{SIGNED}.{b64(other)}", DISCLOSURES)).claims == CLAIMS


def test_leading_zeros():
    """Row 22: short numbers keep their 32 octets, and verify."""
    seen = set()
    for number in range(20_000):
        body = payload(jti=number)
        signed = f"{encode(header())}.{encode(body)}"
        signature = raw_signature(signed)
        short = tuple(half[0] == 0 for half in (signature[:32], signature[32:]))
        if any(short) and short not in seen:
            seen.add(short)
            assert check(join(f"{signed}.{b64(signature)}", DISCLOSURES)).claims == CLAIMS
        if {(True, False), (False, True)} <= seen:
            return
    pytest.fail("no signature with a leading zero")


def test_a_short_signature_is_not_filled_up():
    """Row 21: 63 octets are refused even where the split at 32 would find a good r and s.

    The issuer signed the text that stands before the last 86 characters, not before the last dot.
    """
    for number in range(20_000):
        signed = f"{encode(header())}.{encode(payload(jti=number))}"
        signature = raw_signature(signed[:-2])
        if signature[32] == 0:
            short = b64(signature[:32] + signature[33:])
            assert rejection(join(f"{signed}.{short}", DISCLOSURES)) is R.SIGNATURE
            return
    pytest.fail("no signature with a leading zero")


def test_a_long_signature_is_not_cut_down():
    """Row 21: 66 octets are refused even where s is good but for two zeros before it."""
    for number in range(20_000):
        signed = f"{encode(header())}.{encode(payload(jti=number))}"
        signature = raw_signature(f"{signed}.A")
        long = b64(signature[:32] + bytes(2) + signature[32:])
        if long[0] == "A":
            assert rejection(join(f"{signed}.{long}", DISCLOSURES)) is R.SIGNATURE
            return
    pytest.fail("no signature that begins with six zeros")


@pytest.mark.parametrize("place", ["header", "payload"])
def test_signed_is_the_text_as_sent(place):
    """Row 23: the same JSON in other white space, or in another order, is another text."""
    head, body = header(), payload()
    other_head = dict(reversed(head.items())) if place == "header" else head
    other_body = dict(reversed(body.items())) if place == "payload" else body
    forged = f"{encode(other_head)}.{encode(other_body)}.{b64(GOOD)}"
    assert rejection(join(forged, DISCLOSURES)) is R.SIGNATURE


@pytest.mark.parametrize(
    "text",
    [
        join(f"{encode(header())}.{encode('not JSON')}.{b64(GOOD)}", ["AAAA"]),
        join(f"{SIGNED}.{b64(bytes(64))}", ["AAAA", "AAAA"]),
        join(token(body=payload(exp=1, aud=[]), key=OTHER_KEY), []),
    ],
)
def test_signature_comes_first(text):
    """Row 24: with a bad signature neither payload nor disclosures are looked at."""
    assert rejection(text) is R.SIGNATURE


def test_now_is_the_time_of_the_call():
    """Without ``now`` the current time decides."""
    assert check(credential(exp=2**33, iat=1), now=None).claims == CLAIMS
    assert rejection(credential(exp=1_700_000_000), now=None) is R.PAYLOAD_EXPIRED


def test_now_in_any_zone():
    """An aware time means the same instant in every zone."""
    lagos = timezone(timedelta(hours=1))
    text = credential(exp=EPOCH_NOW + 1)
    assert check(text, now=NOW.astimezone(lagos)) == check(text)
    later = (NOW + timedelta(seconds=1)).astimezone(lagos)
    assert rejection(text, now=later) is R.PAYLOAD_EXPIRED


def test_naive_now_is_the_callers_mistake():
    """A naive time is no instant."""
    with pytest.raises(ValueError, match="aware"):
        check(credential(), now=datetime(2026, 11, 20, 12, 0))  # noqa: DTZ001  the mistake itself


@pytest.mark.parametrize("leeway", [-1, float("nan"), float("inf"), -0.001])
def test_leeway_is_a_duration(leeway):
    """A leeway that is no finite duration is the caller's mistake."""
    with pytest.raises(ValueError, match="leeway"):
        check(credential(), leeway=leeway)


def test_expectations_are_keywords():
    """What could be swapped can only be given by name."""
    with pytest.raises(TypeError):
        check.__globals__["verify"](credential(), None, "issuer", "audience", "test")


@pytest.mark.parametrize("name", ["issuer", "audience", "environment"])
def test_no_expectation_matches_nothing(name):
    """An expectation left empty by mistake closes, whatever the credential lacks."""
    member = {"issuer": "iss", "audience": "aud"}.get(name, name)
    for value in (None, "", [], ["test"]):
        text = join(token(body=payload(**{member: value})), DISCLOSURES)
        assert rejection(text, **{name: None}).value == f"payload.{member}"


REJECTED = [
    credential()[:-1],
    credential() + "é",
    join(token("{"), DISCLOSURES),
    join(token(key=OTHER_KEY), DISCLOSURES),
    join(token(body=b'{"sub":"\xff"}'), DISCLOSURES),
    credential(sub="somebody\0"),
    credential(_sd=[]),
    credential(disclosures=[encode(b"[\xff]")]),
]


@pytest.mark.parametrize("text", REJECTED)
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


def test_nothing_remembers_a_verified_text():
    """A credential is verified each time: what was accepted once expires all the same."""
    text = credential()
    assert check(text).claims == CLAIMS
    assert rejection(text, now=NOW + timedelta(days=2)) is R.PAYLOAD_EXPIRED
    assert rejection(text, audience="client-2") is R.PAYLOAD_AUD
    assert check(text).claims == CLAIMS
