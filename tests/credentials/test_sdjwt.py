"""``verify``: what a caller relies on."""

import json
import logging
import pickle
import traceback
from datetime import datetime, timedelta, timezone

import pytest

from django_identity.credentials import RejectionReason, VerifiedCredential, verify
from django_identity.exceptions import CredentialRejected, IdentityError
from tests.credentials.issuer import (
    CLAIMS,
    EPOCH_NOW,
    NOW,
    OTHER_KEY,
    SUBJECT,
    check,
    credential,
    disclose,
    encode,
    listing,
    rejection,
    written,
)

R = RejectionReason


def test_now():
    """By default the time of the call; an aware time means the same instant in every zone."""
    assert check(credential(exp=2**33, iat=1), now=None).claims == CLAIMS
    assert rejection(credential(exp=1_700_000_000), now=None) is R.PAYLOAD_EXPIRED
    text, here = credential(exp=EPOCH_NOW + 1), NOW.astimezone(timezone(timedelta(hours=1)))
    assert check(text, now=here) == check(text)
    assert rejection(text, now=here + timedelta(seconds=1)) is R.PAYLOAD_EXPIRED


def test_the_callers_mistakes():
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


REJECTED = [
    credential()[:-1], credential() + "é", written("{"), written(key=OTHER_KEY),
    written(body=b'{"sub":"\xff"}'), credential(sub="somebody\0"), credential(_sd=[]),
    credential(disclosures=[encode(b"[\xff]")]),
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


# What it returns: immutable, and discreet


NESTED = {"object": {"list": [1, {"a": True}], "text": "x"}, "list": [[], {}]}


@pytest.fixture
def verified() -> VerifiedCredential:
    return check(listing(*(disclose(name, value) for name, value in NESTED.items())))


@pytest.mark.parametrize(
    "name", ["subject", "environment", "issued_at", "expires_at", "kid", "claims", "exp", "other"]
)
def test_fields_cannot_be_set(verified, name):
    """No attribute can be set, changed or deleted."""
    for change in (lambda: setattr(verified, name, "other"), lambda: delattr(verified, name)):
        with pytest.raises((AttributeError, TypeError)):
            change()


@pytest.mark.parametrize(
    "change",
    [
        lambda claims: claims.update(a=1),
        lambda claims: claims.__setitem__("object", 1),
        lambda claims: claims.pop("object"),
        lambda claims: claims["object"].__setitem__("text", "y"),
        lambda claims: claims["object"].clear(),
        lambda claims: claims["object"]["list"].append(1),
        lambda claims: claims["object"]["list"].__setitem__(0, 2),
        lambda claims: claims["object"]["list"][1].__setitem__("a", False),
        lambda claims: claims["list"][1].setdefault("a", 1),
    ],
    ids=range(9),
)
def test_claims_cannot_be_changed(verified, change):
    """Row 43: the claims are immutable at every depth."""
    with pytest.raises((AttributeError, TypeError)):
        change(verified.claims)
    assert verified.claims_as_json() == NESTED


def test_claims_as_json(verified):
    """Plain JSON comes fresh each time; the credential itself goes into no cache and no task."""
    with pytest.raises(TypeError):
        pickle.dumps(verified)
    plain = verified.claims_as_json()
    assert json.loads(json.dumps(plain)) == NESTED
    plain["object"]["list"].append(2)
    assert verified.claims_as_json() == NESTED


def test_repr_names_nobody():
    """repr shows the names of the claims, neither their values nor the subject."""
    shown = repr(check(credential()))
    assert not [secret for secret in (SUBJECT, "NG", "vendor", "True") if secret in shown]
    assert "key-1" in shown
    assert "country_resident" in shown
