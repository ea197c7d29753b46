"""Async views ask as sync ones do, and after a gate all ways to ask answer alike."""

import asyncio
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import AsyncClient
from django.urls import include, path
from django.views.generic import View

from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    aclaims_of,
    aclosed_to,
    claim_required,
    claims_of,
)
from tests.factories import make_user
from tests.gates.gated_views import LACKS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

PROVEN = "{'age_over_18': True, 'country_resident': 'NG'}"
GATE = Template(
    '{% load identity %}{% identity_gate "age_over_18" "country_resident=NG" %}open'
    "{% else %}closed{% end_identity_gate %}"
)


async def answers(request: HttpRequest) -> HttpResponse:
    """What one way to ask says, of those that the test names."""
    user = await request.auser()
    match request.GET["way"]:
        case "aclaims_of(await request.auser())":
            said: Any = await aclaims_of(user)
        case "aclaims_of(request.user)":
            said = await aclaims_of(request.user)
        case "claims_of(await request.auser())":
            said = claims_of(user)
        case "claims_of(request.user)":
            said = claims_of(request.user)
        case "a template of the request":
            said = GATE.render(Context({"request": request}))
        case "a template with the user":
            said = GATE.render(Context({"user": user}))
    return HttpResponse(str(said))


WAYS = {
    "aclaims_of(await request.auser())": PROVEN,
    "aclaims_of(request.user)": PROVEN,
    "claims_of(await request.auser())": PROVEN,
    "claims_of(request.user)": PROVEN,
    "a template of the request": "open",
    "a template with the user": "open",
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
@pytest.mark.parametrize("way", WAYS)
def test_after_a_gate_every_way_to_ask_answers_alike(user, address, way):
    """Django loads one user for ``request.user`` and another for ``request.auser()``."""

    async def visit() -> Any:
        browser = AsyncClient()
        await browser.aforce_login(user)
        return await browser.get(address, {"way": way})

    assert asyncio.run(visit()).content.decode() == WAYS[way]


def test_a_question_in_an_async_view(user):
    """The same answer as ``closed_to``, with the session for a recent sign-in."""
    gate = Gate("age_over_18")
    assert asyncio.run(aclosed_to(gate, user)) is None
    LACKS["the claim"]()
    other = make_user("eve")
    closed = asyncio.run(aclosed_to(gate, other))
    assert closed is not None
    assert (closed.code, closed.shortfall.reason) == ("claim_missing", "not_linked")
    assert asyncio.run(aclosed_to(Gate(minutes=10), user, session={})) is not None
