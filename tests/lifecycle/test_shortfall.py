"""Why a gate is closed: one reason for each state, and none when it is open."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from django_identity.lifecycle.standing import Reason, Shortfall, standing_of
from django_identity.models import Consent, LinkedIdentity, LinkedVia, TokenGrant
from tests.factories import LONG_AGO, make_claim, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db


def linked(**fields: Any) -> LinkedIdentity:
    name = f"user-{User.objects.count()}"
    return make_identity(make_user(name), subject=name, **fields)


def shortfall_of(user: User | AnonymousUser, asked: str = "age_over_18") -> Shortfall | None:
    return standing_of(user).shortfall_for(asked)


def reason(user: User | AnonymousUser, asked: str = "age_over_18") -> Reason | None:
    shortfall = shortfall_of(user, asked)
    return None if shortfall is None else shortfall.reason


def test_what_closes_every_gate() -> None:
    """Without an identity there is nothing to prove. A consent that ended says since when."""
    assert reason(AnonymousUser()) == reason(make_user("eve")) == Reason.NOT_LINKED
    identity = linked(consent=Consent.REVOKED, revoked_at=LONG_AGO)
    make_claim(identity)
    assert shortfall_of(identity.user) == Shortfall(Reason.CONSENT_REVOKED, since=LONG_AGO)
    assert reason(identity.user, "level_2") is Reason.CONSENT_REVOKED
    by_code = make_identity_by_code(make_user("bola"), subject="subject-2")
    make_claim(by_code, revoked_at=LONG_AGO)
    assert reason(by_code.user, "level_2") is None
    assert reason(by_code.user) is Reason.CONNECT_ONLY


AN_HOUR_AGO = timezone.now() - timedelta(hours=1)
REVOKED = {"revoked_at": LONG_AGO}
LISTED = {"valid_until": None}
#: The claims of one person, and of several claims the one nearest to a proof decides.
CLAIMS: list[tuple[list[dict[str, Any]], Reason | None]] = [
    ([{}], None),
    ([{"valid_until": AN_HOUR_AGO}], Reason.RUN_OUT),
    ([REVOKED], Reason.REVOKED),
    ([REVOKED | LISTED], Reason.REVOKED),
    ([LISTED], Reason.NOT_HELD),
    ([{"value": False}], Reason.OTHER_VALUE),
    ([{"value": "true"}], Reason.OTHER_VALUE),
    ([{"value": {"verified": False}}], Reason.OTHER_VALUE),
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


def test_a_level_in_each_state() -> None:
    """Not verified at all is another thing than verified, but not far enough."""
    for level, status, expected in (
        ("level_2", "verified", None),
        ("level_1", "verified", Reason.LOWER_LEVEL),
        ("level_2", "rejected", Reason.NOT_VERIFIED),
        ("", "", Reason.NOT_VERIFIED),
    ):
        user = linked(kyc_level=level, kyc_status=status).user
        assert reason(user, "level_2") is expected, (level, status)


def test_an_account_in_each_state() -> None:
    """What the account page says first: the connection, the permission, then what ran out."""
    assert standing_of(make_user()).account_shortfall(None) == Shortfall(Reason.NOT_LINKED)
    for fields, grant, expected in (
        ({}, TokenGrant(), None),
        ({}, TokenGrant(needs_reauthorization=True), Reason.PERMISSION_ENDED),
        ({"linked_via": LinkedVia.CONNECT, "account_made": False}, None, Reason.CONNECT_ONLY),
        ({"credential_expires_at": LONG_AGO}, None, Reason.RUN_OUT),
        ({"kyc_status": "rejected"}, None, Reason.NOT_VERIFIED),
        ({"consent": Consent.REVOKED}, None, Reason.CONSENT_REVOKED),
    ):
        shortfall = standing_of(linked(**fields).user).account_shortfall(grant)
        assert (shortfall and shortfall.reason) == expected, fields
