"""Gates: open on proof, and a closed one says so in the asker's own format."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.views.generic import View

from django_identity.gates import (
    ClaimRequiredMixin,
    Closed,
    KycLevelRequiredMixin,
    claim_required,
    kyc_level_required,
)
from tests.records import make_claim, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


def ask(user: Any, view: Any = adults, **headers: str) -> HttpResponse:
    request = RequestFactory().get("/adults/?a=1", headers=headers)
    request.user = user
    return view(request)


def adult() -> User:
    user = make_user()
    make_claim(make_identity(user))
    return user


def test_an_open_gate_is_not_felt() -> None:
    """The view answers as if there were no gate."""
    assert ask(adult()).content == b"in"
    assert ask(adult_at_level()).content == b"in"


def adult_at_level() -> User:
    user = make_user("bola")
    make_claim(make_identity(user, subject="subject-2"))
    return user


def test_a_page_redirects_with_next_and_what_is_missing() -> None:
    """The person is led to the page that says what is missing, and back."""
    response = ask(AnonymousUser())
    assert response.status_code == 302
    assert response["Location"] == (
        "/identity/login/?next=%2Fadults%2F%3Fa%3D1&missing=age_over_18"
    )


def test_json_gets_a_code() -> None:
    """401 for nobody, 403 for somebody without the claim."""
    nobody = ask(AnonymousUser(), accept="application/json")
    somebody = ask(make_user(), accept="application/json")
    assert (nobody.status_code, somebody.status_code) == (401, 403)
    assert json.loads(nobody.content)["code"] == "not_signed_in"
    assert json.loads(somebody.content) == {
        "type": "about:blank",
        "title": "Forbidden",
        "status": 403,
        "code": "claim_missing",
        "detail": "Not connected yet. Your account is not connected to the identity service. "
        "Connect it: you decide there what this site may know.",
        "missing": "age_over_18",
        "recovery": "restart",
        "reference": "",
    }


def test_htmx_is_redirected_as_a_whole() -> None:
    """The page is replaced, not the fragment."""
    response = ask(AnonymousUser(), hx_request="true")
    assert response.status_code == 204
    assert response["HX-Redirect"].startswith("/identity/login/")


def test_forbid_explains() -> None:
    """403, with the missing proof in words."""
    view = claim_required("age_over_18", on_closed="forbid")(adults)
    response = ask(make_user(), view)
    assert response.status_code == 403
    assert b"You are 18 or older" in response.content


@pytest.mark.parametrize(
    ("gate", "is_offered"),
    [(claim_required("age_over_18", on_closed="forbid"), False),
     (kyc_level_required("level_2", on_closed="forbid"), True)],
    ids=["claim", "level"],
)  # fmt: skip
def test_a_code_is_offered_where_it_may_help(gate: Any, is_offered: bool) -> None:
    """A Connect code says the level and proves no claim."""
    page = ask(make_user(), gate(adults)).content
    assert (b"Use a code from identity" in page) is is_offered


def test_who_came_by_code_is_asked_to_sign_in() -> None:
    """There is nothing that could be renewed."""
    user = make_user()
    make_identity_by_code(user)
    page = ask(user, claim_required("age_over_18", on_closed="forbid")(adults)).content
    assert b"A code shares your verification level, and no proofs." in page
    assert b"<span>Continue with identity</span>" in page
    assert b"Check again" not in page


def test_a_callable_decides() -> None:
    """A site's own answer gets the request and what is missing."""

    def answer(request: HttpRequest, closed: Closed) -> HttpResponse:
        return HttpResponse(f"{closed.code} {closed.missing}", status=418)

    view = kyc_level_required("level_2", on_closed=answer)(adults)
    assert ask(make_user(), view).content == b"kyc_level_missing level_2"


def test_an_async_view_is_gated_too() -> None:
    """The same gate before an async view."""

    @claim_required("age_over_18")
    async def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse("in")

    async def get(user: Any) -> HttpResponse:
        request = RequestFactory().get("/")

        async def auser() -> Any:
            return user

        request.auser, request.user = auser, user
        try:
            return await view(request)
        finally:
            # As Django does at the end of a request.
            await sync_to_async(connections.close_all)()

    assert asyncio.run(get(AnonymousUser())).status_code == 302
    user = adult()
    assert asyncio.run(get(user)).content == b"in"


def test_mixins_gate_classes() -> None:
    """A class's gate closes before any of its handlers runs."""

    class Adults(ClaimRequiredMixin, View):
        required_claims = ("age_over_18",)

        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse("in")

    class Borrowers(KycLevelRequiredMixin, Adults):
        required_kyc_level = "level_2"

    user = adult()
    assert ask(user, Adults.as_view()).content == b"in"
    assert ask(user, Borrowers.as_view()).content == b"in"
    assert ask(AnonymousUser(), Adults.as_view()).status_code == 302
    assert ask(AnonymousUser(), Borrowers.as_view()).status_code == 302


def test_a_gate_without_a_claim_is_refused() -> None:
    """A gate that asks for nothing is a mistake, found when it is made."""
    for arguments in [(), ("",)]:
        with pytest.raises(ImproperlyConfigured):
            claim_required(*arguments)
    with pytest.raises(ImproperlyConfigured):
        claim_required("age_over_18", "country_resident", value="NG")


def test_filters_ask_the_same() -> None:
    """Templates get the same answer as views."""
    source = (
        '{% load identity %}{{ user|has_claim:"age_over_18" }} {{ user|has_kyc_level:"level_2" }}'
    )
    assert Template(source).render(Context({"user": adult()})) == "True True"
    assert Template(source).render(Context({"user": AnonymousUser()})) == "False False"


def test_a_filter_may_ask_for_a_value() -> None:
    """The very value, as everywhere."""
    user = make_user()
    make_claim(make_identity(user), "country_resident", "NG")
    source = (
        '{% load identity %}{{ user|has_claim:"country_resident=NG" }} '
        '{{ user|has_claim:"country_resident=GH" }} {{ user|has_claim:"country_resident" }}'
    )
    assert Template(source).render(Context({"user": user})) == "True False False"
