"""Why a gate is closed: one reason for each state, and none when it is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.lifecycle.standing import Reason, shortfall_of
from django_identity.models import Consent
from tests.factories import (
    LONG_AGO,
    make_claim,
    make_identity,
    make_identity_by_code,
    make_user,
)

pytestmark = pytest.mark.django_db


def reason(user: User | AnonymousUser, asked: str = "age_over_18") -> Reason | None:
    shortfall = shortfall_of(user, asked)
    return None if shortfall is None else shortfall.reason


def test_nobody_and_a_stranger_are_not_linked() -> None:
    """Without an identity there is nothing to prove."""
    assert reason(AnonymousUser()) == reason(make_user()) == Reason.NOT_LINKED


def test_consent_that_was_taken_back() -> None:
    """Comes before what the claims say, and says since when."""
    user = make_user()
    make_claim(make_identity(user, consent=Consent.REVOKED, revoked_at=LONG_AGO))
    shortfall = shortfall_of(user, "age_over_18")
    assert (shortfall.reason, shortfall.since) == (Reason.CONSENT_REVOKED, LONG_AGO)
    assert reason(user, "level_2") is Reason.CONSENT_REVOKED


CLAIMS: list[tuple[dict[str, Any], Reason | None]] = [
    ({}, None),
    ({"valid_until": timezone.now() - timedelta(hours=1)}, Reason.RUN_OUT),
    ({"revoked_at": LONG_AGO}, Reason.REVOKED),
    ({"revoked_at": LONG_AGO, "valid_until": None}, Reason.REVOKED),
    ({"valid_until": None}, Reason.NOT_HELD),
    ({"value": False}, Reason.OTHER_VALUE),
    ({"value": "true"}, Reason.OTHER_VALUE),
    ({"value": {"verified": False}}, Reason.OTHER_VALUE),
]


def test_a_claim_in_each_state() -> None:
    """The reason follows the claim's state; None only for the claim that opens the gate."""
    for number, (claim, expected) in enumerate(CLAIMS):
        user = make_user(f"user-{number}")
        make_claim(make_identity(user, subject=f"subject-{number}"), **claim)
        assert reason(user) is expected, claim


def test_a_code_brings_no_proofs() -> None:
    """Whoever came with a Connect code alone lacks a sign-in, and not a verification."""
    user = make_user()
    identity = make_identity_by_code(user)
    assert reason(user) is Reason.CONNECT_ONLY
    assert reason(user, "level_2") is None
    make_claim(identity, revoked_at=LONG_AGO)
    assert reason(User.objects.get()) is Reason.CONNECT_ONLY


def test_a_value_is_named() -> None:
    """Whoever lives elsewhere is told what their proof says."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", {"value": "GH"})
    shortfall = shortfall_of(user, "country_resident=NG")
    assert (shortfall.reason, shortfall.held) == (Reason.OTHER_VALUE, "GH")
    assert reason(user, "country_resident=GH") is None


def test_the_nearest_of_several_counts() -> None:
    """A claim of another provider that ran out says more than one that was revoked."""
    user = make_user()
    identity = make_identity(user)
    ended = timezone.now() - timedelta(minutes=5)
    make_claim(identity, provider="A", revoked_at=LONG_AGO)
    make_claim(identity, provider="B", valid_until=ended)
    shortfall = shortfall_of(user, "age_over_18")
    assert (shortfall.reason, shortfall.since) == (Reason.RUN_OUT, ended)


def test_a_revoked_claim_comes_before_one_that_is_only_listed() -> None:
    """What the person had says more than what nobody proved."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity, provider="A", revoked_at=LONG_AGO)
    make_claim(identity, provider="B", valid_until=None)
    assert reason(user) is Reason.REVOKED


def test_a_level_in_each_state() -> None:
    """Not verified at all is another thing than verified, but not far enough."""
    for number, (level, status, expected) in enumerate(
        (
            ("level_2", "verified", None),
            ("level_1", "verified", Reason.LOWER_LEVEL),
            ("level_2", "rejected", Reason.NOT_VERIFIED),
            ("", "", Reason.NOT_VERIFIED),
        )
    ):
        user = make_user(f"user-{number}")
        make_identity(user, subject=f"subject-{number}", kyc_level=level, kyc_status=status)
        assert reason(user, "level_2") is expected, (level, status)
