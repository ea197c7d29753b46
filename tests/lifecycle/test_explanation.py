"""Why a gate is open or closed: the gate's own answer, and one reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.lifecycle.standing.explanation import GateAnswer, Why, explained
from django_identity.models import Consent, LinkedIdentity
from tests.records import make_claim, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db

AGE = "age_over_18"
PAST = timedelta(hours=-2)


def answer_of(identity: LinkedIdentity, asked: str = AGE) -> GateAnswer:
    gates = explained(identity)
    (answer,) = (answer for answer in (*gates.claims, *gates.levels) if answer.asked == asked)
    return answer


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (None, Why.NOT_HELD),
        ({}, Why.PROVEN),
        ({"valid_until": PAST}, Why.RAN_OUT),
        ({"valid_until": None}, Why.NOT_PROVEN),
        ({"revoked": True}, Why.REVOKED),
        ({"revoked": True, "valid_until": PAST}, Why.REVOKED),
        ({"value": False}, Why.NOT_TRUE),
        ({"value": {"verified": False}}, Why.NOT_TRUE),
        ({"value": 1}, Why.NOT_TRUE),
    ],
)
def test_the_reason_of_a_claim(claim: dict[str, Any] | None, why: Why) -> None:
    """Each state of a claim has its own reason, and only a proven true one is open."""
    identity = make_identity(make_user())
    if claim is not None:
        if isinstance(claim.get("valid_until"), timedelta):
            claim = {**claim, "valid_until": timezone.now() + claim["valid_until"]}
        make_claim(identity, **claim)
    answer = answer_of(identity)
    assert answer.why is why
    assert answer.is_open is (why is Why.PROVEN)
    assert answer.is_open is standing_of(identity.user).has_claim(Requirement(AGE))


def test_a_code_brings_no_claims() -> None:
    """Whoever came with a Connect code alone has to sign in; the level is theirs already."""
    identity = make_identity_by_code(make_user())
    assert answer_of(identity).why is Why.CODE_ALONE
    assert answer_of(identity, "level_2").is_open


def test_a_value_that_a_gate_can_ask_for() -> None:
    """A country opens the gates that ask for it by name, and is said to open no others."""
    identity = make_identity(make_user())
    make_claim(identity, "country_resident", "NG")
    answer = answer_of(identity, "country_resident")
    assert (answer.is_open, answer.why, answer.value) == (True, Why.ASKS_VALUE, "NG")
    assert standing_of(identity.user).has_claim(Requirement("country_resident", "NG"))


def test_a_consent_that_is_revoked_closes_everything() -> None:
    """No claim and no level is looked at then."""
    identity = make_identity(make_user(), consent=Consent.REVOKED)
    make_claim(identity)
    gates = explained(identity)
    assert {answer.why for answer in (*gates.claims, *gates.levels)} == {Why.CONSENT_REVOKED}


def test_the_other_environment_is_named() -> None:
    """What is held from tests opens nothing at an application that is live now."""
    identity = make_identity(make_user(), environment="live")
    make_claim(identity)
    assert answer_of(identity).why is Why.OTHER_ENVIRONMENT


def test_an_application_that_is_gone_is_named() -> None:
    """An alias that is no longer in the settings closes every gate."""
    identity = make_identity(make_user(), application="gone")
    assert answer_of(identity).why is Why.NOT_SET_UP


@pytest.mark.parametrize(
    ("level", "status", "why"),
    [
        ("level_2", "verified", Why.STATED),
        ("level_1", "verified", Why.LEVEL_TOO_LOW),
        ("level_2", "rejected", Why.NOT_VERIFIED),
        ("", "", Why.NOT_HELD),
    ],
)
def test_the_reason_of_a_level(level: str, status: str, why: Why) -> None:
    """A level is open if it is stated as verified and high enough."""
    identity = make_identity(make_user(), kyc_level=level, kyc_status=status)
    answer = answer_of(identity, "level_2")
    assert answer.why is why
    assert answer.is_open is standing_of(identity.user).has_kyc_level("level_2")


def test_settings_are_asked_each_time() -> None:
    """An application moved to live closes at once what was open in tests."""
    identity = make_identity(make_user())
    make_claim(identity)
    assert answer_of(identity).is_open
    live = {"ENVIRONMENT": "live", "BASE_URL": "https://id.example/api/v1",
            "AUTH_URL": "https://id.example", "CLIENT_ID": "c",
            "CLIENT_SECRET": "a-client-secret-for-tests-alone"}  # fmt: skip
    with override_settings(DJANGO_IDENTITY={"default": live}):
        assert answer_of(identity).why is Why.OTHER_ENVIRONMENT
