"""Questions that a site asks itself: about many people at once, and in async code."""

import asyncio
from copy import copy
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from django.views.generic import View

from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    aclaims_of,
    aclosed_to,
    claim_required,
    claims_of,
    claims_of_all,
    closed_to,
)
from tests.factories import again, make_claim, make_identity, make_user, people
from tests.gates.gated_views import LACKS
from tests.gates.test_gates_closed import device, failing_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

BADGES = (
    "{% load identity %}{% identity_claims_of members as proven %}"
    "{% for member, claims in proven %}{{ member }}{% if claims.age_over_18 %} 18+{% endif %};"
    "{% endfor %}"
)


def badges(members: Any) -> str:
    return Template(BADGES).render(Context({"members": members}))


def test_a_page_of_badges_costs_two_queries():
    """For any number of people; what gates and filters ask about them then costs none.

    The claims are those of each person alone, as ``claims_of`` has them.
    """
    known = [*people().values()]
    with CaptureQueriesContext(connection) as captured:
        shown = badges(known)
        claims = claims_of_all([*map(copy, known)])
        assert claims == {person.pk: claims_of(person) for person in known}
        gate = Gate("age_over_18")
        proven = [each.username for each in known if closed_to(gate, each) is None]
    assert len(captured) == 4
    assert proven == ["proven", "of a lower level"]
    assert shown.count("18+") == 2
    assert shown.startswith("proven 18+;by code;revoked;")
    assert claims == {person.pk: claims_of(again(person)) for person in known}


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
    with connection.execute_wrapper(failing_database):
        assert badges([User(pk=1, username="ada")]) == "ada;"
    assert "identity.gate.failed" in caplog.text
    assert badges(None) == badges("") == ""


def test_thousands_of_people_cost_two_queries(django_assert_num_queries):
    last = make_user(id=3_000)
    make_claim(make_identity(last))
    with django_assert_num_queries(2):
        claims = claims_of_all([User(pk=number) for number in range(1, 3_001)])
    assert len(claims) == 3_000
    assert claims[last.pk] == {"age_over_18": True}


PROVEN = "{'age_over_18': True, 'country_resident': 'NG'}"
GATE = Template(
    '{% load identity %}{% identity_gate "age_over_18" "country_resident=NG" %}open'
    "{% else %}closed{% end_identity_gate %}",
)
PEOPLE = ("request.user", "await request.auser()")


async def answers(request: HttpRequest) -> HttpResponse:
    """What one way to ask says, of those that the test names."""
    user = await request.auser() if "auser" in request.GET["of"] else request.user
    match request.GET["way"]:
        case "aclaims_of":
            said: Any = await aclaims_of(user)
        case "claims_of":
            said = claims_of(user)
        case "a template":
            said = GATE.render(Context({"user": user}))
        case "a template of the request":
            said = GATE.render(Context({"request": request}))
    return HttpResponse(str(said))


WAYS = {
    "aclaims_of": PROVEN,
    "claims_of": PROVEN,
    "a template": "open",
    "a template of the request": "open",
}


class Answers(ClaimRequiredMixin, View):
    required_claims = ("age_over_18",)

    async def get(self, request: HttpRequest) -> HttpResponse:
        return await answers(request)


urlpatterns = [
    path("decorated/", claim_required("age_over_18")(answers)),
    path("class/", Answers.as_view()),
    path("", include("tests.urls")),
]


@pytest.mark.parametrize("address", ["/decorated/", "/class/"])
@pytest.mark.parametrize("of", PEOPLE)
@pytest.mark.parametrize("way", WAYS)
def test_after_a_gate_every_way_to_ask_answers_alike(user, address, way, of):
    """Django loads one user for ``request.user`` and another for ``request.auser()``."""

    async def visit() -> Any:
        browser = AsyncClient()
        await browser.aforce_login(user)
        return await browser.get(address, {"way": way, "of": of})

    assert asyncio.run(visit()).content.decode() == WAYS[way]


def test_a_question_in_an_async_view(user):
    gate = Gate("age_over_18")
    assert asyncio.run(aclosed_to(gate, user)) is None
    LACKS["the claim"]()
    other = make_user("eve")
    closed = asyncio.run(aclosed_to(gate, other))
    assert closed is not None
    assert closed.code == "claim_missing"
    assert closed.shortfall.reason == "not_linked"
    assert asyncio.run(aclosed_to(Gate(minutes=10), user, session={})) is not None
