"""What a gate may ask for, and what the error says of anything else."""

from typing import Any

import pytest

from django_identity.requirements import (
    NotARequirement,
    RecentSignIn,
    RequiredClaim,
    RequiredLevel,
    RequiredScope,
    parse,
)

CLAIMS: list[tuple[str, str, tuple[str, ...]]] = [
    ("age_over_18", "age_over_18", ()),
    ("country_resident=NG", "country_resident", ("NG",)),
    ("country_resident=PT|FR|ES", "country_resident", ("PT", "FR", "ES")),
    ("country_resident=PT|FR|PT", "country_resident", ("PT", "FR")),
    ("residence=São Tomé|Côte d'Ivoire", "residence", ("São Tomé", "Côte d'Ivoire")),
]


@pytest.mark.parametrize(("text", "claim_type", "values"), CLAIMS)
def test_a_claim_is_read_from_its_text(text, claim_type, values):
    """A name, or a name and the values of which one is enough."""
    required = RequiredClaim.parse(text)
    assert required == RequiredClaim(claim_type, values)
    assert RequiredClaim.parse(str(required)) == required


NO_CLAIMS: list[tuple[Any, str]] = [
    (None, "A claim is a text such as"),
    ("", "A claim is a text"),
    (7, "A claim is a text"),
    ("country_resident=", "A claim is a text"),
    ("=|PT", "A claim is a text"),
    ("country_resident=PT|", "A claim is a text"),
    ("country_resident=|PT", "A claim is a text"),
    ("country_resident=PT||FR", "A claim is a text"),
    ("country_resident=PT|country_resident=FR", "no ="),
    ("country_resident==PT", "no ="),
    ("age_over_18|unique_human", "values of one claim"),
    ("country_resident=PT | FR", "space"),
    (" age_over_18", "space"),
    ("age_over_18\n", "A claim"),
    ("level_2", "kyc_level_required"),
    ("documents:read", "scope_required"),
    ("recent_sign_in", "recent_sign_in_required"),
]


@pytest.mark.parametrize(("value", "rule"), NO_CLAIMS)
def test_what_is_no_claim_is_named_with_the_rule(value, rule):
    """A gate that nobody could pass is a mistake that is found when it is made."""
    with pytest.raises(NotARequirement) as refused:
        RequiredClaim.parse(value)
    assert repr(value) in str(refused.value)
    assert rule in refused.value.rule


NOT_REQUIRED: list[tuple[Any, str, list[Any]]] = [
    # A claim, a list and a scope are none.
    (
        RequiredLevel,
        'such as "level_2"',
        ["", None, 2, "age_over_18", "level_1|level_2", "a=b", "x:y"],
    ),
    # Each scope has a gate of its own.
    (RequiredScope, 'such as "documents:read"', ["", None, 7, "documents:read openid"]),
    # A comparison with it would be always true, or never.
    (
        RecentSignIn,
        "a number above 0",
        [0, -1, True, "10", None, float("nan"), float("inf")],
    ),
]


@pytest.mark.parametrize(
    ("kind", "rule", "value"),
    [(kind, rule, value) for kind, rule, values in NOT_REQUIRED for value in values],
)
def test_what_is_no_level_scope_or_time(kind, rule, value):
    with pytest.raises(NotARequirement, match=rule):
        kind(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("level_2", RequiredLevel),
        ("recent_sign_in", RecentSignIn),
        ("country_resident=PT|FR", RequiredClaim),
    ],
)
def test_what_a_problem_names_is_read_back(text, kind):
    """A level, a sign-in and a claim are told apart by their form."""
    required = parse(text)
    assert isinstance(required, kind)
    assert str(required) == text
