"""Why a gate is closed: one reason for each state, and none when it is open."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, LinkedIdentity, LinkedVia, TokenGrant
from django_identity.reasons import Reason, Shortfall
from django_identity.requirements import parse
from tests.factories import (
    LONG_AGO,
    make_claim,
    make_identity,
    make_identity_by_code,
    make_user,
)

pytestmark = pytest.mark.django_db


def linked(**fields: Any) -> LinkedIdentity:
    name = f"user-{User.objects.count()}"
    return make_identity(make_user(name), subject=name, **fields)


def shortfall_of(
    user: User | AnonymousUser, asked: str = "age_over_18"
) -> Shortfall | None:
    return standing_of(user).shortfall(parse(asked))


def reason(user: User | AnonymousUser, asked: str = "age_over_18") -> Reason | None:
    shortfall = shortfall_of(user, asked)
    return None if shortfall is None else shortfall.reason


def test_what_closes_every_gate() -> None:
    """Without an identity there is nothing to prove. A consent that ended says since when."""
    assert reason(AnonymousUser()) == reason(make_user("eve")) == Reason.NOT_LINKED
    identity = linked(consent=Consent.REVOKED, revoked_at=LONG_AGO)
    make_claim(identity)
    assert shortfall_of(identity.user) == Shortfall(
        Reason.CONSENT_REVOKED, since=LONG_AGO
    )
    assert reason(identity.user, "level_2") is Reason.CONSENT_REVOKED
    by_code = make_identity_by_code(make_user("bola"), subject="subject-2")
    make_claim(by_code, revoked_at=LONG_AGO)
    assert reason(by_code.user, "level_2") is None
    assert reason(by_code.user) is Reason.CONNECT_ONLY


AN_HOUR_AGO = timezone.now() - timedelta(hours=1)
REVOKED = {"revoked_at": LONG_AGO}
LISTED: dict[str, Any] = {"valid_until": None, "value": None}
#: The claims of one person, and of several claims the one nearest to a proof decides.
CLAIMS: list[tuple[list[dict[str, Any]], Reason | None]] = [
    ([{}], None),
    ([{"valid_until": AN_HOUR_AGO}], Reason.RUN_OUT),
    ([REVOKED], Reason.REVOKED),
    ([REVOKED | LISTED], Reason.REVOKED),
    ([LISTED], Reason.NOT_CONFIRMED),
    ([], Reason.NOT_CONFIRMED),
    ([REVOKED | LISTED | {"value": True}], Reason.REVOKED),
    ([{"valid_until": AN_HOUR_AGO}, LISTED | {"value": True}], Reason.RUN_OUT),
    ([{"value": False}], Reason.NOT_CONFIRMED),
    ([{"value": "true"}], Reason.NOT_CONFIRMED),
    ([{"value": {"verified": False}}], Reason.NOT_CONFIRMED),
    ([REVOKED, {"valid_until": AN_HOUR_AGO}], Reason.RUN_OUT),
    ([REVOKED, LISTED], Reason.REVOKED),
]


def test_a_claim_in_each_state() -> None:
    """The reason follows the claim's state; None only for the claim that opens the gate."""
    for claims, expected in CLAIMS:
        identity = linked()
        for provider, claim in zip("AB", claims, strict=False):
            make_claim(identity, provider=provider, **claim)
        assert reason(identity.user) is expected, claims
        if expected is Reason.RUN_OUT:
            assert shortfall_of(identity.user) == Shortfall(expected, since=AN_HOUR_AGO)
    abroad = linked()
    make_claim(abroad, "country_resident", {"value": "GH"})
    other = Shortfall(Reason.OTHER_VALUE, held="GH", claim_type="country_resident")
    assert shortfall_of(abroad.user, "country_resident=NG") == other


ALL_SCOPES = ["profile:read", "kyc:read", "claims:read"]
UNTRIED: dict[str, Any] = {"kyc_status": "", "kyc_level": "", "scopes": ALL_SCOPES}
#: Nothing proves the claim: what the person can do depends on how the verification went.
UNPROVEN: list[tuple[dict[str, Any], Reason]] = [
    ({"kyc_status": "verified"}, Reason.NOT_CONFIRMED),
    ({"kyc_status": "rejected"}, Reason.REJECTED),
    ({"kyc_status": "unverified"}, Reason.NOT_VERIFIED),
    (UNTRIED, Reason.NOT_VERIFIED),
    (UNTRIED | {"last_error": "service_timeout"}, Reason.UNREAD),
    ({"last_error": "credential_rejected"}, Reason.UNVERIFIABLE),
    ({"kyc_status": "rejected", "last_error": "credential_rejected"}, Reason.REJECTED),
    ({"kyc_status": "rejected", "last_error": "service_timeout"}, Reason.REJECTED),
    ({"scopes": ["profile:read", "kyc:read"]}, Reason.SCOPE_NOT_GIVEN),
    (UNTRIED | {"scopes": ["profile:read"]}, Reason.SCOPE_NOT_GIVEN),
]


def test_without_a_proof_the_verification_tells_the_next_step() -> None:
    """Whoever is verified is not sent to verify, and whoever was refused or unread hears that."""
    for fields, expected in UNPROVEN:
        assert reason(linked(**fields).user) is expected, fields


def test_a_claim_that_names_no_value_is_not_another_value() -> None:
    """No sentence ends in nothing: "Your country of residence: ."."""
    identity = linked()
    make_claim(identity, "country_resident", True)
    assert reason(identity.user, "country_resident=NG") is Reason.NOT_CONFIRMED


def test_a_level_in_each_state() -> None:
    """Not verified, refused, not allowed and not read are four things; so is a lower level."""
    for fields, expected in (
        ({}, None),
        ({"kyc_level": "level_1"}, Reason.LOWER_LEVEL),
        ({"kyc_status": "rejected"}, Reason.REJECTED),
        (UNTRIED, Reason.NOT_VERIFIED),
        (UNTRIED | {"scopes": ["claims:read"]}, Reason.SCOPE_NOT_GIVEN),
        (UNTRIED | {"last_error": "service_timeout"}, Reason.UNREAD),
        (
            {"kyc_status": "unverified", "last_error": "service_timeout"},
            Reason.NOT_VERIFIED,
        ),
    ):
        user = linked(**fields).user
        assert reason(user, "level_2") is expected, fields


def test_an_account_in_each_state() -> None:
    """What the account page says first: the connection, the permission, then what ran out."""
    assert standing_of(make_user()).account_shortfall(None) == Shortfall(
        Reason.NOT_LINKED
    )
    for fields, grant, expected in (
        ({}, TokenGrant(), None),
        ({}, TokenGrant(needs_reauthorization=True), Reason.PERMISSION_ENDED),
        (
            {"linked_via": LinkedVia.CONNECT, "account_made": False},
            None,
            Reason.CONNECT_ONLY,
        ),
        ({"credential_expires_at": LONG_AGO}, None, Reason.RUN_OUT),
        ({"kyc_status": "rejected"}, None, Reason.REJECTED),
        (
            {"kyc_status": "rejected", "credential_expires_at": LONG_AGO},
            None,
            Reason.REJECTED,
        ),
        (UNTRIED, None, Reason.NOT_VERIFIED),
        (UNTRIED | {"scopes": ["claims:read"]}, None, None),
        ({"consent": Consent.REVOKED}, None, Reason.CONSENT_REVOKED),
    ):
        shortfall = standing_of(linked(**fields).user).account_shortfall(grant)
        assert (shortfall and shortfall.reason) == expected, fields


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([REVOKED, REVOKED], Reason.REVOKED),
        ([REVOKED, {}], None),
        ([REVOKED | LISTED], Reason.REVOKED),
        ([{"valid_until": AN_HOUR_AGO}, {"valid_until": AN_HOUR_AGO}], Reason.RUN_OUT),
        ([REVOKED, {"valid_until": AN_HOUR_AGO}], Reason.RUN_OUT),
        ([], None),
    ],
    ids=[
        "all revoked",
        "one of two revoked",
        "listed as revoked",
        "all ran out",
        "one revoked and one ran out",
        "none ever",
    ],
)
def test_an_account_without_any_proof_left(
    claims: list[dict[str, Any]], expected: Reason | None
) -> None:
    """If all proofs were revoked or ran out, the account page says so, and what to do."""
    identity = linked()
    for provider, claim in zip("AB", claims, strict=False):
        make_claim(identity, provider=provider, **claim)
    shortfall = standing_of(identity.user).account_shortfall(None)
    assert (shortfall and shortfall.reason) == expected
