"""What holds for a user now: promise 1, only proven claims open a gate."""

import pickle
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_identity.gates import claims_of
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.requirements import RequiredClaim
from tests.deliveries import deliver
from tests.factories import (
    AN_HOUR_AGO,
    LONG_AGO,
    make_claim,
    make_grant,
    make_identity,
    make_user,
)
from tests.lifecycle.refetches import refetched
from tests.sign_in import sign_in
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db


def has(user, asked="age_over_18"):
    return standing_of(user).shortfall(RequiredClaim.parse(asked)) is None


def holder(**claim):
    """A person with this one claim, and no other."""
    user = make_user(f"user-{User.objects.count()}")
    make_claim(make_identity(user, subject=user.get_username()), **claim)
    return user


def adult():
    user = make_user()
    make_claim(make_identity(user))
    return user


#: What no gate without a value takes for a yes. A claim with a noun takes a text in it.
NOES = [
    "no",
    "0",
    "denied",
    "null",
    "rejected",
    "false",
    0,
    [],
    ["no"],
    {"answer": "no"},
    {},
    " ",
    "",
    None,
    False,
    1,
]
MEANS_NO = [
    *(
        ("age_over_18", no)
        for no in (*NOES, "true", {"value": True}, {"verified": "true"})
    ),
    *(("age_over_18", {"verified": no}) for no in NOES),
    *(("age_over_18", {"verified": True, "value": no}) for no in NOES),
    *(("age_over_18", {"verified": True, "age_over_18": no}) for no in NOES),
    *(
        ("country_resident", {"verified": True, "country": no})
        for no in (0, ["no"], " ", {})
    ),
    ("kyc_verified", {"verified": True, "revoked": True}),
    ("kyc_verified", {"verified": True, "revoked": "yes"}),
    ("kyc_verified", {"verified": True, "status": "rejected"}),
    ("age_over_18", {"verified": True, "value": True, "revoked": None}),
    ("age_over_18", {"verified": False, "value": True}),
    ("age_over_18", {"verified": True, "value": True, "age_over_18": False}),
]
MEANS_YES = [
    ("age_over_18", True),
    ("age_over_18", {"verified": True}),
    ("age_over_18", {"verified": True, "value": True}),
    ("age_over_18", {"verified": True, "age_over_18": True}),
    ("kyc_verified", {"verified": True, "status": "verified"}),
    ("country_resident", {"verified": True, "country": "NO"}),
    ("country_resident", {"verified": True, "country": True, "value": True}),
]
UNPROVEN = [
    {"revoked_at": LONG_AGO},
    {"valid_until": None},
    {"valid_until": AN_HOUR_AGO},
    {"claim_type": "age_over_21"},
    {"claim_type": "AGE_OVER_18"},
]


def test_every_other_claim_keeps_it_closed():
    """A disclosed claim is not a true claim, and a listed one is not a proven one.

    What says no in any words is not among what the site's own code is shown: its mere name would
    read as a yes.
    """
    for claim in UNPROVEN:
        assert not has(holder(**claim)), claim
    for claim_type, value in MEANS_NO:
        user = holder(claim_type=claim_type, value=value)
        assert not has(user, claim_type), value
        assert claims_of(user) == {}, value
    for claim_type, value in MEANS_YES:
        assert has(holder(claim_type=claim_type, value=value), claim_type), value


#: What is shown of a country of residence, and in which values it says so.
AFFIRMED = {
    "NG": [
        "NG",
        {"value": "NG"},
        {"country": "NG"},
        *(
            {"verified": True, name: "NG"}
            for name in ("value", "country", "country_resident")
        ),
        {"verified": True, "value": "NG", "country": "NG"},
        {"verified": True, "value": True, "country": "NG"},
    ],
    "ng": ["ng"],
    "GH": ["GH", {"verified": True, "country": "GH"}],
    True: [
        True,
        {"verified": True, "provider": "NG"},
        {"verified": True, "human": "NG"},
    ],
    None: [
        False,
        "False",
        1,
        "",
        None,
        ["NG"],
        {"value": True},
        {"verified": False},
        *({"verified": no, "value": "NG"} for no in (False, None, 1)),
        *({"verified": True, "country": no} for no in (None, False, ["NG"])),
        *(
            {"verified": True, "value": no, "country": "NG"}
            for no in ("GH", 1, False, None)
        ),
        *({"verified": True, "value": "NG", "country": no} for no in ("GH", "")),
        *(
            {"verified": True, "country": "NG", "country_resident": no}
            for no in ("GH", False)
        ),
        {"verified": True, "value": False},
        {"verified": False, "country": "NG"},
    ],
}


def test_a_gate_may_ask_for_a_value():
    """The asked value must be exactly the disclosed one.

    The noun of another claim is none, and a gate that asks for no value opens on no text.
    """
    for shown, values in AFFIRMED.items():
        for value in values:
            user = holder(claim_type="country_resident", value=value)
            expected = {} if shown is None else {"country_resident": shown}
            assert claims_of(user) == expected, value
            assert has(user, "country_resident=NG") is (shown == "NG"), value
            assert not (has(user, "country_resident") and shown is None), value
    assert not has(
        holder(claim_type="country_resident", value="NG"),
        "country_resident",
    )
    user = holder(claim_type="kyc_verified", value={"verified": True, "country": "NG"})
    assert not has(user, "kyc_verified=NG")
    assert claims_of(user) == {"kyc_verified": True}


LEVELS = [
    ("level_2", "level_2", True),
    ("level_2", "level_1", True),
    ("level_1", "level_2", False),
    ("level_10", "level_9", True),
    ("", "level_1", False),
    ("gold", "gold", True),
    ("gold", "level_1", False),
    ("level_2", "gold", False),
    ("level_2x", "level_2", False),
    ("level_\u0663", "level_2", False),
]


def test_levels_are_compared_as_numbers():
    """A higher level includes the lower ones; a level of another form equals only itself."""
    identity = make_identity(make_user())
    for held, asked, opens in LEVELS:
        LinkedIdentity.objects.filter(pk=identity.pk).update(kyc_level=held)
        user = User.objects.get(pk=identity.user_id)
        assert (standing_of(user).level_shortfall(asked) is None) is opens, (
            held,
            asked,
        )


def test_time_is_judged_at_each_question(monkeypatch):
    """What is remembered for a request still runs out on time."""
    user = make_user()
    ends_at = timezone.now() + timedelta(minutes=1)
    make_claim(make_identity(user), valid_until=ends_at)
    for now, opens in ((ends_at - timedelta(microseconds=1), True), (ends_at, False)):
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        assert has(user) is opens
        assert claims_of(user) == ({"age_over_18": True} if opens else {})


def revoke():
    LinkedIdentity.objects.update(consent=Consent.REVOKED)


def test_what_is_remembered_ends(monkeypatch):
    """With the instance, and after five seconds; it travels neither pickled nor printed."""
    user = adult()
    assert has(user)
    travelled = pickle.dumps(user)
    assert b"age_over_18" not in travelled
    assert "age_over_18" not in str(vars(user))
    revoke()
    assert has(user)
    assert not has(User.objects.get())
    assert not has(pickle.loads(travelled))
    late = time.monotonic() + 6
    monkeypatch.setattr(time, "monotonic", lambda: late)
    assert not has(user)


def copied(user):
    """Django's way to copy a row."""
    user.pk = None
    user.username = "copy"
    user._state.adding = True
    user.save()


def reloaded_as_another(user):
    user.pk = make_user("another").pk
    user.refresh_from_db()


@pytest.mark.parametrize("become", [copied, reloaded_as_another])
def test_an_instance_that_becomes_another_account_has_its_standing(become):
    user = adult()
    assert has(user)
    become(user)
    assert not has(user)
    assert claims_of(user) == {}


#: What is proven before, and what is changed then. It opens the gate unless that was open.
FORGETTING = {
    "a first sign-in": (None, lambda user: sign_in(browser_of(user))),
    "a sign-in": ("empty", lambda user: sign_in(browser_of(user))),
    "a re-fetch": (
        "empty",
        lambda _: refetched(make_grant(LinkedIdentity.objects.get()).identity),
    ),
    "a revoked claim": ("proven", lambda _: deliver("claim.revoked")),
    "a revoked consent": ("proven", lambda _: deliver("consent.revoked")),
    "an operator": (
        "proven",
        lambda _: interventions.revoke(LinkedIdentity.objects.all()),
    ),
    "a disconnection": (
        "proven",
        lambda _: disconnecting.disconnect(LinkedIdentity.objects.get()),
    ),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("before", "change"), FORGETTING.values(), ids=FORGETTING)
def test_what_this_process_changes_is_seen_at_once(service, before, change):
    """On an instance that has been asked before: a page, or a receiver of a signal, has it."""
    user = make_user()
    if before is not None:
        identity = make_identity(user, account_made=False)
    if before == "proven":
        make_claim(identity)
    assert has(user) is (before == "proven")
    change(user)
    assert has(user) is (before != "proven")


class OtherPlace(IdentityPolicy):
    """Reads a country where this site's service has it."""

    def claim_value(self, claim_type, value):
        if isinstance(value, dict) and "residence" in value:
            return value["residence"]
        return super().claim_value(claim_type, value)


RESIDENCES = [
    ({"verified": True, "residence": "NGA"}, True),
    ({"verified": True, "value": "NGA"}, True),
    ("NGA", True),
    ({"verified": True, "residence": "GHA"}, False),
    ({"verified": True, "residence": 7}, False),
    ({"verified": True, "residence": True}, False),
    ({"verified": True, "residence": "NGA", "country": "NG", "value": "Nigeria"}, True),
    ({"verified": False, "residence": "NGA"}, False),
    ({"verified": True, "residence": "NGA", "value": False}, False),
]
DENIALS = [False, None, {"verified": False}, {"value": "false"}]


class SaysYes(IdentityPolicy):
    """Reads the same place in whatever it is given."""

    def claim_value(self, claim_type, value):
        return "NGA"


def test_a_policy_may_read_the_value(use_policy):
    """But it is not asked about a value that denies: bare, empty, or in an object."""
    said = [(OtherPlace, *each) for each in RESIDENCES] + [
        (SaysYes, no, False) for no in DENIALS
    ]
    for chosen, value, opens in said:
        use_policy(chosen)
        user = holder(claim_type="country_resident", value=value)
        assert has(user, "country_resident=NGA") is opens, value
        assert (claims_of(user).get("country_resident") == "NGA") is opens, value


class WritesYes(IdentityPolicy):
    """Writes into the value that it reads."""

    def claim_value(self, claim_type, value):
        value.update(verified=True, value=True)
        return


def test_a_policy_that_writes_into_the_value_changes_nothing(use_policy):
    use_policy(WritesYes)
    user = holder(value={"verified": True, "value": "no"})
    for _ in range(2):
        assert not has(user)
        assert claims_of(user) == {}


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_providers_the_longer_proof_speaks(order):
    """Whatever the order of the rows; of two that end together, the last by name."""
    user = make_user()
    identity = make_identity(user)
    soon, later = (timezone.now() + timedelta(hours=hours) for hours in (1, 2))
    rows = [
        ("B", "GH", later),
        ("A", "NG", soon),
        ("C", "KE", later),
        ("D", False, later),
    ]
    for provider, value, valid_until in rows[::order]:
        make_claim(
            identity,
            "country_resident",
            value,
            provider=provider,
            valid_until=valid_until,
        )

    assert claims_of(user) == {"country_resident": "KE"}
