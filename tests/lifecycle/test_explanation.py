"""What an operator is told of a person's gates: what the person is told, with the same reasons."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from django_identity.lifecycle.operators.timeline import GateAnswer, gates_of
from django_identity.lifecycle.standing import Reason, shortfall_of
from django_identity.models import Consent, LinkedIdentity, StoredClaim
from tests.factories import LONG_AGO, make_claim, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db

AGE = "age_over_18"
AN_HOUR_AGO = timezone.now() - timedelta(hours=1)


def answer_of(identity: LinkedIdentity, asked: str = AGE) -> GateAnswer:
    gates = gates_of(identity)
    (answer,) = (answer for answer in gates if answer.asked == asked)
    return answer


def reason_of(identity: LinkedIdentity, asked: str = AGE) -> Reason | None:
    shortfall = answer_of(identity, asked).shortfall
    return None if shortfall is None else shortfall.reason


STATES: tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...] = (
    ({}, []),
    ({}, [{}]),
    ({}, [{"valid_until": AN_HOUR_AGO}]),
    ({}, [{"valid_until": None}]),
    ({}, [{"revoked_at": LONG_AGO}]),
    ({}, [{"revoked_at": LONG_AGO, "valid_until": None}]),
    ({}, [{"value": False}]),
    ({}, [{"value": {"verified": True, "value": False}}]),
    ({}, [{"provider": "A", "revoked_at": LONG_AGO}, {"provider": "B", "valid_until": None}]),
    (
        {},
        [{"provider": "A", "revoked_at": LONG_AGO}, {"provider": "B", "valid_until": AN_HOUR_AGO}],
    ),
    ({}, [{"provider": "A", "value": False}, {"provider": "B"}]),
    ({"consent": Consent.REVOKED}, [{}]),
    ({"kyc_level": "", "kyc_status": ""}, []),
    ({"kyc_level": "level_1"}, []),
    ({"kyc_status": "rejected"}, []),
    ({"revoked_at": timezone.now()}, [{}]),
)


def test_person_and_operator_are_told_the_same() -> None:
    """In every state, for every claim and level."""
    made = [make_identity_by_code(make_user(), subject="by-code")]
    for number, (identity, claims) in enumerate(STATES):
        user = make_user(f"user-{number}")
        made.append(make_identity(user, subject=user.username, **identity))
        for claim in claims:
            make_claim(made[-1], **claim)
    for identity in made:
        for answer in gates_of(identity):
            assert answer.shortfall == shortfall_of(identity.user, answer.asked)


def test_an_open_gate_says_until_when() -> None:
    """Of several proofs the longest counts."""
    identity = make_identity(make_user())
    longest = timezone.now() + timedelta(hours=3)
    make_claim(identity, provider="A", valid_until=longest)
    make_claim(identity, provider="B", valid_until=longest - timedelta(hours=1))
    assert answer_of(identity) == GateAnswer(AGE, None, longest)


def test_a_claim_with_a_value_says_it() -> None:
    """Somebody of Egypt is refused where a gate asks for Nigeria, and where it asks for true."""
    identity = make_identity(make_user())
    made = make_claim(identity, "country_resident", "EG")
    answer = answer_of(identity, "country_resident")
    assert (answer.shortfall is None, answer.says) == (False, ("EG",))
    assert answer.open_until == made.valid_until
    StoredClaim.objects.update(revoked_at=LONG_AGO)
    assert answer_of(LinkedIdentity.objects.get(), "country_resident").says == ()


def test_settings_are_asked_each_time() -> None:
    """What was open in tests is closed under an alias that is gone or moved to live."""
    live = {"ENVIRONMENT": "live", "BASE_URL": "https://id.example/api/v1",
            "AUTH_URL": "https://id.example", "CLIENT_ID": "c",
            "CLIENT_SECRET": "a-client-secret-for-tests-alone"}  # fmt: skip
    identity = make_identity(make_user())
    assert answer_of(identity, "level_2").shortfall is None
    with override_settings(DJANGO_IDENTITY={"default": live}):
        assert reason_of(identity, "level_2") is Reason.NOT_SET_UP
    LinkedIdentity.objects.update(application="gone")
    assert reason_of(LinkedIdentity.objects.get(), "level_2") is Reason.NOT_SET_UP
