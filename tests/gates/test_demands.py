"""One demand asks for less than another if somebody passes it who does not pass the other."""

from itertools import chain, combinations, product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_identity.gates.demands import (
    OPEN,
    Demand,
    Every,
    Foreign,
    Not,
    Some,
    as_json,
    describe,
    every,
    from_json,
    implies,
    some,
)
from django_identity.requirements import (
    RecentSignIn,
    RequiredClaim,
    RequiredLevel,
    RequiredScope,
)
from tests.effort import effort

ADULT = RequiredClaim("age_over_18")
HUMAN = RequiredClaim("unique_human")
STAFF = Foreign("rest_framework.permissions.IsAdminUser")


def lives_in(*countries: str) -> RequiredClaim:
    return RequiredClaim("country_resident", countries)


def level(number: int) -> RequiredLevel:
    return RequiredLevel(f"level_{number}")


#: What is asked for, what asks for less or as much, and whether the first leads to the second.
PAIRS = [
    (ADULT, OPEN, True),
    (OPEN, ADULT, False),
    (every([ADULT, HUMAN]), every([HUMAN, ADULT]), True),
    (every([ADULT, HUMAN]), ADULT, True),
    (ADULT, every([ADULT, HUMAN]), False),
    (lives_in("PT"), lives_in("FR", "PT"), True),
    (lives_in("FR", "PT"), lives_in("PT"), False),
    (lives_in("FR", "PT"), some([lives_in("PT"), lives_in("FR")]), True),
    (some([lives_in("PT"), lives_in("FR")]), lives_in("FR", "PT"), True),
    (lives_in("PT"), RequiredClaim("country_resident"), False),
    (level(3), level(1), True),
    (level(10), level(9), True),
    (level(1), level(3), False),
    (RequiredLevel("gold"), level(1), False),
    (RequiredLevel("gold"), RequiredLevel("gold"), True),
    (RecentSignIn(5), RecentSignIn(50), True),
    (RecentSignIn(50), RecentSignIn(5), False),
    (RequiredClaim("email"), RequiredScope("email"), False),
    (Not(level(1)), Not(level(3)), True),
    (Not(level(3)), Not(level(1)), False),
    (every([ADULT, STAFF]), some([ADULT, STAFF]), True),
    (some([ADULT, STAFF]), ADULT, False),
    (every([ADULT, Not(ADULT)]), HUMAN, True),
    (OPEN, some([ADULT, Not(ADULT)]), True),
    (every([some([ADULT, HUMAN]), Not(HUMAN)]), ADULT, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    PAIRS,
    ids=[f"{describe(now)} after {describe(before)}" for now, before, _ in PAIRS],
)
def test_what_leads_to_what(now: Demand, before: Demand, *, expected: bool) -> None:
    """A value among several, a higher level, a shorter time, and all combinations."""
    assert implies(now, before) is expected


class Person(NamedTuple):
    """Somebody, for whom demands are judged one by one."""

    is_adult: bool
    countries: tuple[str, ...]
    level: int
    minutes: float
    is_staff: bool

    def passes(self, demand: Demand) -> bool:
        match demand:
            case Every(parts=parts):
                return all(self.passes(part) for part in parts)
            case Some(parts=parts):
                return any(self.passes(part) for part in parts)
            case Not(part=part):
                return not self.passes(part)
            case RequiredClaim(values=values):
                return bool({*values} & {*self.countries}) if values else self.is_adult
            case RequiredLevel(level=asked):
                return self.level >= int(asked[-1])
            case RecentSignIn(minutes=minutes):
                return self.minutes <= minutes
        return self.is_staff


COUNTRIES = ("PT", "FR", "ES")
OF_COUNTRIES = [
    *chain.from_iterable(combinations(COUNTRIES, count) for count in range(4))
]
TRUTHS = (False, True)
PEOPLE = [
    Person(*each)
    for each in product(TRUTHS, OF_COUNTRIES, range(4), (3, 30, 300), TRUTHS)
]
SINGLE: list[Demand] = [
    ADULT, STAFF, level(1), level(2), level(3), RecentSignIn(5), RecentSignIn(50),
    *(lives_in(*countries) for countries in OF_COUNTRIES if countries),
]  # fmt: skip
DEMANDS = st.recursive(
    st.sampled_from(SINGLE),
    lambda below: st.one_of(
        st.builds(every, st.lists(below, max_size=3)),
        st.builds(some, st.lists(below, min_size=1, max_size=3)),
        st.builds(Not, below),
    ),
    max_leaves=6,
)


@effort(few=100, many=5_000)
@given(now=DEMANDS, before=DEMANDS)
def test_a_demand_leads_to_another_if_nobody_passes_it_alone(
    now: Demand, before: Demand
) -> None:
    """Judged for every person that there can be."""
    alone = [each for each in PEOPLE if each.passes(now) and not each.passes(before)]
    assert implies(now, before) == (not alone)


@effort(few=100, many=5_000)
@given(demand=DEMANDS)
def test_a_stored_demand_is_read_as_it_was(demand: Demand) -> None:
    """The file of ``--json`` loses nothing."""
    assert from_json(as_json(demand)) == demand


def test_hundreds_of_alternatives_are_compared_at_once() -> None:
    """A permission for each country of the world is compared in no time."""
    world = [f"C{number}" for number in range(250)]
    one_by_one = some([lives_in(country) for country in world])
    assert implies(one_by_one, lives_in(*world))
    assert implies(lives_in(*world), one_by_one)
    assert not implies(lives_in(*world, "XX"), one_by_one)
