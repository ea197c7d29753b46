"""The claims of many people at once, and the badges of a page."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext

from django_identity.gates import Gate, claims_of, claims_of_all, closed_to
from tests.factories import again, make_claim, make_identity, make_user, people
from tests.gates.test_gates_closed import device, failing_database

pytestmark = pytest.mark.django_db

BADGES = (
    "{% load identity %}{% identity_claims_of members as proven %}"
    "{% for member, claims in proven %}{{ member }}{% if claims.age_over_18 %} 18+{% endif %};"
    "{% endfor %}"
)


def make_people(count: int) -> list[User]:
    """Every second one has an identity, and every fourth is proven to be of age."""
    User.objects.bulk_create(
        [User(username=f"user-{number}") for number in range(count)]
    )
    people = list(User.objects.order_by("pk"))
    for number, person in enumerate(people):
        if number % 2 == 0:
            identity = make_identity(person, subject=f"subject-{number}")
            make_claim(identity, "age_over_18", value=number % 4 == 0)
    return people


def badges(members: Any) -> str:
    return Template(BADGES).render(Context({"members": members}))


def test_a_page_of_badges_costs_two_queries():
    """For any number of people; what gates and filters ask about them then costs none."""
    people = make_people(20)
    with CaptureQueriesContext(connection) as captured:
        shown = badges(people)
        claims = claims_of_all([again_in_memory(person) for person in people])
        assert all(claims_of(person) == claims[person.pk] for person in people)
        gate = Gate("age_over_18")
        assert sum(closed_to(gate, person) is None for person in people) == 5
    assert len(captured) == 4
    assert shown.count("18+") == 5
    assert shown.startswith("user-0 18+;user-1;user-2;user-3;user-4 18+;")


def again_in_memory(user: User) -> User:
    """The same row in an instance of its own, without a query."""
    values = [getattr(user, field.attname) for field in User._meta.concrete_fields]
    names = [field.attname for field in User._meta.concrete_fields]
    return User.from_db("default", names, values)


def test_the_claims_are_those_of_each_person_alone():
    """As ``claims_of`` has them, of people in every situation."""
    known = people().values()
    claims = claims_of_all(known)
    assert claims == {person.pk: claims_of(again(person)) for person in known}
    assert {} in claims.values()


def test_who_has_no_standing_is_left_out():
    """Nobody gets the claims of a person whose key is the same."""
    user = make_user()
    make_claim(make_identity(user))
    foreign = again(user)
    foreign._state.db = "elsewhere"
    strangers = [AnonymousUser(), User(username="unsaved"), device(user), None, foreign]
    assert claims_of_all([]) == claims_of_all(strangers) == {}
    assert claims_of_all([user, *strangers, user]) == {user.pk: {"age_over_18": True}}
    assert badges([user, foreign]).count("18+") == 1


def test_a_failure_shows_no_badge(caplog):
    """The people are listed, and the log says why."""
    people = make_people(2)
    with connection.execute_wrapper(failing_database):
        assert badges(people) == "user-0;user-1;"
    assert "identity.gate.failed" in caplog.text
    assert badges(None) == badges("") == ""


def test_ten_thousand_people_cost_two_queries():
    """The claims of a whole site, for an export."""
    last = make_user(id=10_000)
    make_claim(make_identity(last))
    people = [User(pk=number) for number in range(1, 10_001)]
    with CaptureQueriesContext(connection) as captured:
        claims = claims_of_all(people)
    assert len(captured) == 2
    assert len(claims) == 10_000
    assert claims[last.pk] == {"age_over_18": True}
