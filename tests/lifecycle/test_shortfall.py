"""Why a gate is closed: one reason for each state, and none when it is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.lifecycle.standing import Reason, shortfall_of
from django_identity.models import Consent
from tests.records import (
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
    make_claim(make_identity(user, consent=Consent.REVOKED))
    shortfall = shortfall_of(user, "age_over_18")
    assert (shortfall.reason, shortfall.since) == (Reason.CONSENT_REVOKED, LONG_AGO)
    assert reason(user, "level_2") is Reason.CONSENT_REVOKED


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ({}, None),
        ({"valid_until": timezone.now() - timedelta(hours=1)}, Reason.RUN_OUT),
        ({"revoked": True}, Reason.REVOKED),
        ({"revoked": True, "valid_until": None}, Reason.REVOKED),
        ({"valid_until": None}, Reason.NEVER_PROVEN),
        ({"value": False}, Reason.OTHER_VALUE),
        ({"value": "true"}, Reason.OTHER_VALUE),
        ({"value": {"verified": False}}, Reason.OTHER_VALUE),
    ],
)
def test_a_claim_in_each_state(claim: dict[str, Any], expected: Reason | None) -> None:
    """The reason follows the claim's state; None only for the claim that opens the gate."""
    user = make_user()
    make_claim(make_identity(user), **claim)
    assert reason(user) is expected


def test_a_code_brings_no_proofs() -> None:
    """Whoever came with a Connect code alone lacks a sign-in, and not a verification."""
    user = make_user()
    identity = make_identity_by_code(user)
    assert reason(user) is Reason.CONNECT_ONLY
    assert reason(user, "level_2") is None
    make_claim(identity, revoked=True)
    user = User.objects.get()
    assert reason(user) is Reason.CONNECT_ONLY
    identity.credential_expires_at = timezone.now()
    identity.save()
    user = User.objects.get()
    assert reason(user) is Reason.REVOKED
    assert reason(user, "unique_human") is Reason.NOT_HELD


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
    make_claim(identity, provider="A", revoked=True)
    make_claim(identity, provider="B", valid_until=ended)
    shortfall = shortfall_of(user, "age_over_18")
    assert (shortfall.reason, shortfall.since) == (Reason.RUN_OUT, ended)


def test_a_revoked_claim_comes_before_one_that_is_only_listed() -> None:
    """What the person had says more than what nobody proved."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity, provider="A", revoked=True)
    make_claim(identity, provider="B", valid_until=None)
    assert reason(user) is Reason.REVOKED


@pytest.mark.parametrize(
    ("kyc", "expected"),
    [
        ({"kyc_level": "level_2"}, None),
        ({"kyc_level": "level_1"}, Reason.LOWER_LEVEL),
        ({"kyc_level": "level_2", "kyc_status": "rejected"}, Reason.NOT_VERIFIED),
        ({"kyc_level": "", "kyc_status": ""}, Reason.KYC_UNKNOWN),
    ],
)
def test_a_level_in_each_state(kyc: dict[str, str], expected: Reason | None) -> None:
    """Not verified at all is another thing than verified, but not far enough."""
    user = make_user()
    make_identity(user, **kyc)
    assert reason(user, "level_2") is expected
