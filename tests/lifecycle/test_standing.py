"""What holds for a user now: promise 1, only proven claims open a gate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from django_identity.gates import claims_of
from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.models import Consent
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db

ADULT = Requirement("age_over_18")


def has(user: User, asked: str = "age_over_18") -> bool:
    return standing_of(user).has_claim(Requirement.parse(asked))


def test_a_proven_claim_under_a_granted_consent_opens() -> None:
    """The one way to an open gate."""
    user = make_user()
    make_claim(make_identity(user))
    assert has(user)
    assert claims_of(user) == {"age_over_18": True}


@pytest.mark.parametrize(
    "claim",
    [
        {"revoked": True},
        {"valid_until": None},
        {"valid_until": timezone.now() - timedelta(seconds=1)},
        {"value": False},
        {"value": None},
        {"value": 1},
        {"value": "true"},
        {"value": []},
        {"value": {}},
        {"value": {"verified": False}},
        {"value": {"verified": 1}},
        {"value": {"verified": "true"}},
        {"value": {"verified": False, "value": True}},
        {"claim_type": "age_over_21"},
        {"claim_type": "AGE_OVER_18"},
    ],
)
def test_every_other_claim_keeps_it_closed(claim: dict[str, Any]) -> None:
    """A disclosed claim is not a true claim, and a listed one is not a proven one."""
    user = make_user()
    make_claim(make_identity(user), **claim)
    assert not has(user)


@pytest.mark.parametrize("value", [True, {"verified": True}, {"value": True}])
def test_true_has_three_spellings(value: Any) -> None:
    """Plain truth, or an object whose ``verified`` or ``value`` is."""
    user = make_user()
    make_claim(make_identity(user), value=value)
    assert has(user)


@pytest.mark.parametrize(
    "identity",
    [{"consent": Consent.REVOKED}, {"application": "other"}, {"environment": "live"}],
)
def test_only_a_granted_identity_of_this_application_counts(identity: dict[str, Any]) -> None:
    """No consent, another application, or the other environment: closed."""
    user = make_user()
    make_claim(make_identity(user, **identity))
    assert not has(user)
    assert not standing_of(user).has_kyc_level("level_1")
    assert claims_of(user) == {}


@pytest.mark.parametrize(
    ("value", "opens"),
    [("NG", True), ({"value": "NG"}, True), ("ng", False), ("GH", False), (True, False),
     ({"verified": False, "value": "NG"}, False), ({"verified": True, "value": "NG"}, True),
     ({"verified": True, "provider": "NG"}, False), (["NG"], False)],
)  # fmt: skip
def test_a_gate_may_ask_for_a_value(value: Any, opens: bool) -> None:
    """The asked value must be exactly the disclosed one."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", value)
    assert has(user, "country_resident=NG") is opens


@pytest.mark.parametrize(("signed_in", "opens"), [(-1, False), (0, False), (1, True)])
def test_what_was_revoked_since_the_sign_in_is_closed(signed_in: int, opens: bool) -> None:
    """A revocation of everything closes at once, before any row of a claim is touched."""
    revoked_at = timezone.now()
    signed_in_at = revoked_at + timedelta(seconds=signed_in)
    user = make_user()
    make_claim(make_identity(user, revoked_at=revoked_at, signed_in_at=signed_in_at))
    assert has(user) is opens
    assert claims_of(user) == ({"age_over_18": True} if opens else {})


def test_a_country_is_not_plain_truth() -> None:
    """A gate that asks for no value does not open on a text."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", "NG")
    assert not has(user, "country_resident")


@pytest.mark.parametrize(
    ("held", "asked", "opens"),
    [("level_2", "level_2", True), ("level_2", "level_1", True), ("level_1", "level_2", False),
     ("level_10", "level_9", True), ("", "level_1", False), ("", "", False), ("gold", "gold", True),
     ("gold", "level_1", False), ("level_2x", "level_2", False)],
)  # fmt: skip
def test_levels_are_compared_as_numbers(held: str, asked: str, opens: bool) -> None:
    """A higher level includes the lower ones; a level of another form equals only itself."""
    user = make_user()
    make_identity(user, kyc_level=held)
    assert standing_of(user).has_kyc_level(asked) is opens


def test_a_rejected_person_has_no_level() -> None:
    """The level stands only with the status that goes with it."""
    user = make_user()
    make_identity(user, kyc_status="rejected")
    assert not standing_of(user).has_kyc_level("level_1")


def test_one_query_however_often_it_is_asked(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    """Ten gates cost one query; an anonymous user costs none."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_claim(identity, "unique_human")
    user = User.objects.get(pk=user.pk)
    with django_assert_num_queries(1):
        for _ in range(10):
            assert has(user)
            assert standing_of(user).has_kyc_level("level_2")
    with django_assert_num_queries(0):
        assert not standing_of(AnonymousUser()).has_claim(ADULT)


def test_time_is_judged_at_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered for a request still runs out on time."""
    user = make_user()
    ends_at = timezone.now() + timedelta(minutes=1)
    make_claim(make_identity(user), valid_until=ends_at)
    for now, opens in ((ends_at - timedelta(microseconds=1), True), (ends_at, False)):
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        assert has(user) is opens
        assert claims_of(user) == ({"age_over_18": True} if opens else {})
