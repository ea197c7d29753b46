"""``verify``: what a caller relies on."""

import logging
import traceback
from datetime import datetime, timedelta, timezone

import pytest

from django_identity.credentials import RejectionReason, verify
from django_identity.exceptions import CredentialRejected, IdentityError
from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    NOW,
    OTHER_KEY,
    SUBJECT,
    check,
    credential,
    encode,
    join,
    payload,
    rejection,
    token,
)

R = RejectionReason


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


def test_the_callers_mistakes():
    """A naive time, a leeway that is no duration, and expectations that could be swapped."""
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
        text = join(token(body=payload(**{member: value})), DISCLOSURES)
        assert rejection(text, **{name: None}).value == f"payload.{member}"


REJECTED = [
    credential()[:-1], credential() + "é", join(token("{"), DISCLOSURES),
    join(token(key=OTHER_KEY), DISCLOSURES), join(token(body=b'{"sub":"\xff"}'), DISCLOSURES),
    credential(sub="somebody\0"), credential(_sd=[]), credential(disclosures=[encode(b"[\xff]")]),
]  # fmt: skip


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
