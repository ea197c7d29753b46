"""What a gate answers: nothing of its own where it is open; closed, it says what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from inspect import isawaitable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext
from django.views.generic import View

from django_identity.gates import (
    ClaimRequiredMixin,
    Closed,
    claim_required,
    claims_of,
    kyc_level_required,
)
from tests.factories import again, make_claim, make_identity, make_identity_by_code, make_user
from tests.fake_service import FakeService, serving

pytestmark = pytest.mark.django_db(transaction=True)


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


async def async_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


def ask(view: Any, user: Any, method: str = "get", **headers: str) -> HttpResponse:
    """Ask as a browser would, whatever the view is."""
    request = getattr(RequestFactory(), method)("/here/?a=1", headers=headers)
    request.user = user

    async def auser() -> Any:
        return user

    request.auser = auser
    answer = view(request)
    return async_to_sync(_awaited)(answer) if isawaitable(answer) else answer


async def _awaited(answer: Any) -> HttpResponse:
    return await answer


class Page(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("in")

    post = get


class AsyncPage(View):
    async def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("in")

    post = get


def decorated(page: Any, **chosen: Any) -> Any:
    return claim_required("age_over_18", "unique_human", **chosen)(page)


def mixed(page: Any, **chosen: Any) -> Any:
    asked = {"required_claims": ("age_over_18", "unique_human"), **chosen}
    return type("Gated", (ClaimRequiredMixin, page), asked).as_view()


WAYS = {
    "view": lambda **chosen: decorated(view, **chosen),
    "async view": lambda **chosen: decorated(async_view, **chosen),
    "class": lambda **chosen: mixed(Page, **chosen),
    "async class": lambda **chosen: mixed(AsyncPage, **chosen),
}
every_way = pytest.mark.parametrize("gated", WAYS.values(), ids=WAYS)


@pytest.fixture
def user() -> User:
    """Somebody over 18, of Nigeria, at the second level."""
    person = make_user()
    identity = make_identity(person)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return person


@pytest.fixture
def two_applications() -> Iterator[FakeService]:
    """Two clients of one service."""
    with serving() as service:
        setting = {"default": service.settings(), "second": service.settings(CLIENT_ID="client-2")}
        with override_settings(DJANGO_IDENTITY=setting):
            yield service


@every_way
def test_a_redirect_names_what_is_missing(gated: Any, user: User) -> None:
    """The person is led to where it can be had, told which, and back; a POST is not repeated."""
    assert ask(gated(), user)["Location"] == (
        "/identity/login/?next=%2Fhere%2F%3Fa%3D1&missing=unique_human"
    )
    assert ask(gated(), user, "post")["Location"] == "/identity/login/?missing=unique_human"
    assert ask(gated(), AnonymousUser()).status_code == 302
    make_claim(user.linked_identities.get(), "unique_human")
    assert ask(gated(), again(user)).content == b"in"


@pytest.mark.parametrize(
    ("gate", "missing"),
    [
        (claim_required("country_resident=GH"), "country_resident%3DGH"),
        (claim_required("country_resident"), "country_resident"),
        (kyc_level_required("level_3"), "level_3"),
    ],
)
def test_the_very_value_and_the_level_are_named(user: User, gate: Any, missing: str) -> None:
    location = ask(gate(view), user)["Location"]
    assert location == f"/identity/login/?next=%2Fhere%2F%3Fa%3D1&missing={missing}"


@every_way
def test_a_closed_gate_forbids_if_that_was_chosen(gated: Any, user: User) -> None:
    """403 for a page, which no cache keeps; 401 or 403 and a code for JSON."""
    page = ask(gated(on_closed="forbid"), user, hx_request="true")
    assert (page.status_code, page["Cache-Control"]) == (403, "no-store, private")
    told = ask(gated(on_closed="forbid"), AnonymousUser(), accept="application/json")
    assert (told.status_code, json.loads(told.content)["code"]) == (401, "not_signed_in")


def test_json_gets_problem_details() -> None:
    """403 for somebody without the claim, in words."""
    told = ask(claim_required("age_over_18")(view), make_user(), accept="application/json")
    assert told.status_code == 403
    assert json.loads(told.content) == {
        "type": "about:blank",
        "title": "Forbidden",
        "status": 403,
        "code": "claim_missing",
        "detail": "Not connected yet. Your account is not connected to your identity service. "
        "Connect it: you decide there what this site may know.",
        "missing": "age_over_18",
        "recovery": "restart",
        "reference": "",
    }


def test_htmx_is_redirected_as_a_whole() -> None:
    """The page is replaced, not the fragment."""
    response = ask(claim_required("age_over_18")(view), AnonymousUser(), hx_request="true")
    assert response.status_code == 204
    assert response["HX-Redirect"].startswith("/identity/login/")


@pytest.mark.parametrize(
    ("gate", "is_offered"),
    [
        (claim_required("age_over_18", on_closed="forbid"), False),
        (kyc_level_required("level_2", on_closed="forbid"), True),
    ],
    ids=["claim", "level"],
)
def test_a_code_is_offered_where_it_may_help(gate: Any, is_offered: bool) -> None:
    """A Connect code says the level and proves no claim."""
    page = ask(gate(view), make_user()).content
    assert (b"Use a code from your identity service" in page) is is_offered


def test_who_came_by_code_is_asked_to_sign_in() -> None:
    """There is nothing that could be renewed."""
    user = make_user()
    make_identity_by_code(user)
    page = ask(claim_required("age_over_18", on_closed="forbid")(view), user).content
    assert b"Needed: you are 18 or older" in page
    assert b"A code shares your verification level, and no proofs." in page
    assert b"<span>Continue with your identity service</span>" in page
    assert b"Check again" not in page


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_callable_decides(user: User, accept: str) -> None:
    """For every asker, and hears why the gate is closed."""
    heard: list[Closed] = []

    def answer(request: HttpRequest, closed: Closed) -> HttpResponse:
        heard.append(closed)
        return HttpResponse(status=418)

    gated = claim_required("country_resident=GH", on_closed=answer)(view)
    assert ask(gated, user, accept=accept).status_code == 418
    assert ask(gated, AnonymousUser(), accept=accept).status_code == 418
    somebody, nobody = heard
    assert (somebody.code, somebody.missing) == ("claim_missing", "country_resident")
    assert (somebody.asked, somebody.application) == ("country_resident=GH", "default")
    assert (somebody.shortfall.reason, somebody.shortfall.held) == ("other_value", "NG")
    assert (nobody.code, nobody.shortfall) == ("not_signed_in", None)


@pytest.mark.usefixtures("two_applications")
def test_claims_are_of_one_application() -> None:
    """Two identities of one user are kept apart, also in what a request remembers."""
    user = make_user()
    make_claim(make_identity(user))
    make_claim(make_identity(user, application="second"), "unique_human")
    with CaptureQueriesContext(connection) as captured:
        for _ in range(3):
            assert claims_of(user) == {"age_over_18": True}
            assert claims_of(user, application="second") == {"unique_human": True}
    assert len(captured) == 3
