"""Why a gate is closed: one reason for each state, and none when it is open."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import TokenGrant
from django_identity.reasons import Reason, Shortfall
from django_identity.requirements import parse
from tests.factories import (
    AN_HOUR_AGO,
    LISTED,
    LONG_AGO,
    SITUATIONS,
    UNREAD,
    make_claim,
    make_identity,
    make_user,
    people,
)

pytestmark = pytest.mark.django_db

R = Reason


def linked(*claims, **fields):
    """Somebody with these claims, each of another provider."""
    name = f"user-{User.objects.count()}"
    identity = make_identity(make_user(name), subject=name, **fields)
    for provider, claim in zip("AB", claims, strict=False):
        make_claim(identity, provider=provider, **claim)
    return identity.user


def reason(user, asked="age_over_18"):
    shortfall = standing_of(user).shortfall(parse(asked))
    return None if shortfall is None else shortfall.reason


def first_of_account(user, grant=None):
    shortfall = standing_of(user).account_shortfall(grant)
    return None if shortfall is None else shortfall.reason


#: What closes the gate of a claim, that of a level, and what the account page says first.
CLOSED = {
    "proven": (None, None, None),
    "by code": (R.CONNECT_ONLY, None, R.CONNECT_ONLY),
    "revoked": (R.CONSENT_REVOKED, R.CONSENT_REVOKED, R.CONSENT_REVOKED),
    "of the other environment": (R.NOT_LINKED, R.NOT_LINKED, R.NOT_LINKED),
    "of a lower level": (None, R.LOWER_LEVEL, None),
    "rejected": (R.REJECTED, R.REJECTED, R.REJECTED),
    "not verified": (R.NOT_VERIFIED, R.NOT_VERIFIED, R.NOT_VERIFIED),
    "not read": (R.UNREAD, R.UNREAD, R.UNREAD),
    "without the scopes": (R.SCOPE_NOT_GIVEN, R.SCOPE_NOT_GIVEN, None),
    "of a claim that ran out": (R.RUN_OUT, None, R.RUN_OUT),
    "of a revoked claim": (R.REVOKED, None, R.REVOKED),
    "of a listed claim": (R.NOT_CONFIRMED, None, None),
}


def test_everybody_is_told_what_is_in_the_way():
    """And only a proven claim of this environment, with a consent, is shown to the site's code."""
    assert CLOSED.keys() == SITUATIONS.keys()
    for name, user in people().items():
        standing = standing_of(user)
        found = (reason(user), reason(user, "level_2"), first_of_account(user))
        assert found == CLOSED[name], name
        assert standing.is_linked is (found[0] not in (R.NOT_LINKED, R.CONSENT_REVOKED))
        assert claims_of(user) == ({} if found[0] else {"age_over_18": True}), name


def test_a_reason_says_since_when_and_what_is_held():
    """A person who is nobody, or has no identity, has nothing to prove."""
    for nobody in (AnonymousUser(), make_user("eve")):
        assert reason(nobody) is first_of_account(nobody) is R.NOT_LINKED
    known = people()
    asked = parse("age_over_18")
    assert standing_of(known["revoked"]).shortfall(asked) == Shortfall(
        R.CONSENT_REVOKED,
        since=LONG_AGO,
    )
    ran_out = standing_of(known["of a claim that ran out"]).shortfall(asked)
    assert ran_out == Shortfall(R.RUN_OUT, since=AN_HOUR_AGO)
    for value, expected in (
        ("GH", Shortfall(R.OTHER_VALUE, held="GH", claim_type="country_resident")),
        # No sentence ends in nothing: "Your country of residence: .".
        (True, Shortfall(R.NOT_CONFIRMED)),
    ):
        user = linked({"claim_type": "country_resident", "value": value})
        assert standing_of(user).shortfall(parse("country_resident=NG")) == expected


REVOKED = {"revoked_at": LONG_AGO}
RUN_OUT = {"valid_until": AN_HOUR_AGO}
#: Of several claims the one nearest to a proof decides. The account page counts proofs.
CLAIMS = [
    ([], R.NOT_CONFIRMED, None),
    ([REVOKED | LISTED], R.REVOKED, R.REVOKED),
    ([REVOKED | LISTED | {"value": True}], R.REVOKED, R.REVOKED),
    ([RUN_OUT, LISTED | {"value": True}], R.RUN_OUT, R.RUN_OUT),
    ([{"value": False}], R.NOT_CONFIRMED, None),
    ([{"value": "true"}], R.NOT_CONFIRMED, None),
    ([{"value": {"verified": False}}], R.NOT_CONFIRMED, None),
    ([REVOKED, RUN_OUT], R.RUN_OUT, R.RUN_OUT),
    ([REVOKED, LISTED], R.REVOKED, R.REVOKED),
    ([REVOKED, REVOKED], R.REVOKED, R.REVOKED),
    ([REVOKED, {}], None, None),
    ([RUN_OUT, RUN_OUT], R.RUN_OUT, R.RUN_OUT),
]


def test_a_claim_in_each_state():
    """None only for the claim that opens the gate."""
    for claims, expected, of_account in CLAIMS:
        user = linked(*claims)
        assert reason(user) is expected, claims
        assert first_of_account(user) is of_account, claims


#: Nothing proves the claim: what the person can do depends on how the verification went.
UNPROVEN = [
    ({"kyc_status": "unverified"}, R.NOT_VERIFIED, R.NOT_VERIFIED),
    ({"kyc_status": "unverified", "last_error": "x"}, R.UNREAD, R.NOT_VERIFIED),
    ({"last_error": "credential_rejected"}, R.UNVERIFIABLE, None),
    (
        {"kyc_status": "rejected", "last_error": "credential_rejected"},
        R.REJECTED,
        R.REJECTED,
    ),
    ({"kyc_status": "rejected", "last_error": "x"}, R.REJECTED, R.REJECTED),
    ({"scopes": ["profile:read", "kyc:read"]}, R.SCOPE_NOT_GIVEN, None),
    (UNREAD | {"scopes": ["claims:read"]}, R.NOT_VERIFIED, R.SCOPE_NOT_GIVEN),
]


def test_without_a_proof_the_verification_tells_the_next_step():
    """Whoever is verified is not sent to verify, and whoever was refused or unread hears that."""
    for fields, of_claim, of_level in UNPROVEN:
        user = linked(**fields)
        assert reason(user) is of_claim, fields
        assert reason(user, "level_2") is of_level, fields


def test_what_the_account_page_says_first():
    """The connection, the permission, then what ran out."""
    ended = {"credential_expires_at": LONG_AGO}
    for fields, grant, expected in (
        ({}, TokenGrant(), None),
        ({}, TokenGrant(needs_reauthorization=True), R.PERMISSION_ENDED),
        (ended, None, R.RUN_OUT),
        (ended | {"kyc_status": "rejected"}, None, R.REJECTED),
        (UNREAD | {"scopes": ["claims:read"]}, None, None),
    ):
        assert first_of_account(linked(**fields), grant) is expected, fields
