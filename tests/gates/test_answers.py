"""What a closed gate answers where the site chooses: always a problem, or for its own question."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.test import Client
from django.urls import include, path

from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    claim_required,
    closed_response,
    closed_to,
)
from tests.gates.gated_views import AsyncPage, Page, answer_of, async_view, view

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

GATE = Gate("country_resident=GH")
asked = claim_required("country_resident=GH", on_closed="problem")


def asking(request: HttpRequest, on_closed: Any = "redirect") -> Any:
    """A view with a question of its own."""
    closed = closed_to(GATE, request.user)
    if closed is not None:
        return closed_response(request, closed, on_closed=on_closed)
    return view(request)


class Asked(ClaimRequiredMixin, Page):
    required_claims = ("country_resident=GH",)
    on_closed = "problem"


class AskedAsync(ClaimRequiredMixin, AsyncPage):
    required_claims = ("country_resident=GH",)
    on_closed = "problem"


urlpatterns = [
    path("asked/", claim_required("country_resident=GH")(view)),
    path("forbid/", claim_required("country_resident=GH", on_closed="forbid")(view)),
    path("asking/", asking),
    path("asking/forbid/", asking, {"on_closed": "forbid"}),
    path("", include("tests.urls")),
]
PROBLEMS = {
    "view": asked(view),
    "async view": asked(async_view),
    "class": Asked.as_view(),
    "async class": AskedAsync.as_view(),
    "own question": lambda request: asking(request, "problem"),
}


@pytest.mark.parametrize(
    "accept", ["text/html", "*/*", "", "application/json", "image/png"]
)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_whatever_the_request_accepts(user, name, accept):
    """For views that answer JSON alone. A cache keeps it for nobody else."""
    for asker, status in ((user, 403), (AnonymousUser(), 401)):
        answer = answer_of(PROBLEMS[name], asker, accept=accept, hx_request="true")
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["missing"] == "country_resident=GH"
        assert answer["Cache-Control"] == "private"
        assert "Cookie" in answer["Vary"]
        assert answer.get("WWW-Authenticate") == ("Session" if status == 401 else None)


@pytest.mark.parametrize(
    ("asking_at", "asked_at"),
    [("/asking/", "/asked/"), ("/asking/forbid/", "/forbid/")],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
@pytest.mark.parametrize("htmx", [{}, {"HX-Request": "true"}])
def test_a_question_of_the_sites_own_is_answered_as_a_gate_is(
    user, asking_at, asked_at, accept, htmx
):
    """With its status and its headers, for a person and for nobody."""
    browser = Client()
    for _ in ("nobody", "somebody"):
        answers = [
            browser.get(address, headers={"Accept": accept, **htmx})
            for address in (asking_at, asked_at)
        ]
        statuses = {answer.status_code for answer in answers}
        names = {tuple(sorted(answer.headers)) for answer in answers}
        kept = {(answer["Vary"], answer["Cache-Control"]) for answer in answers}
        assert (len(statuses), len(names), len(kept)) == (1, 1, 1)
        browser.force_login(user)


@pytest.mark.parametrize("on_closed", [None, "", "forbidden", 403])
def test_an_answer_that_there_is_not_is_an_error(user, on_closed):
    """And no redirect that the site did not mean."""
    with pytest.raises(
        ImproperlyConfigured, match='"redirect", "forbid", "problem" or a callable'
    ):
        answer_of(lambda request: asking(request, on_closed), user)
