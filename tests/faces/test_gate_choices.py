"""What a gate may ask for and answer: every way to write it, sync and async."""

from __future__ import annotations

import json
from collections.abc import Iterator
from inspect import isawaitable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext
from django.views.generic import View

from django_identity.gates import (
    ClaimRequiredMixin,
    Closed,
    KycLevelRequiredMixin,
    claim_required,
    claims_of,
    kyc_level_required,
)
from tests.a_request import a_request
from tests.hostile import HostileService, hostile_service
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def sync_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


async def async_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


def sync_decorated(gate: str, **chosen: Any) -> Any:
    return decorator(gate, chosen)(sync_view)


def async_decorated(gate: str, **chosen: Any) -> Any:
    return decorator(gate, chosen)(async_view)


def decorator(gate: str, chosen: dict[str, Any]) -> Any:
    if gate.startswith("level"):
        return kyc_level_required(gate, **chosen)
    return claim_required(*gate.split(), **chosen)


def sync_class(gate: str, **chosen: Any) -> Any:
    class Gated(mixin(gate, **chosen), View):
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse("in")

        post = get

    return Gated.as_view()


def async_class(gate: str, **chosen: Any) -> Any:
    class Gated(mixin(gate, **chosen), View):
        async def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse("in")

        post = get

    return Gated.as_view()


def mixin(gate: str, **chosen: Any) -> Any:
    asked = {
        "identity_application": chosen.get("application", "default"),
        "on_closed": staticmethod(given)
        if callable(given := chosen.get("on_closed", "redirect"))
        else given,
    }
    if gate.startswith("level"):
        return type("Mixin", (KycLevelRequiredMixin,), {"required_kyc_level": gate, **asked})
    value = {"required_value": chosen["value"]} if "value" in chosen else {}
    claims = {"required_claims": tuple(gate.split())}
    return type("Mixin", (ClaimRequiredMixin,), claims | value | asked)


every_way = pytest.mark.parametrize(
    "gated",
    [sync_decorated, async_decorated, sync_class, async_class],
    ids=lambda way: way.__name__,
)


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


@pytest.fixture
def user() -> User:
    """Somebody over 18, of Nigeria, at the second level."""
    person = make_user()
    identity = make_identity(person)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return person


@pytest.fixture
def two_applications() -> Iterator[HostileService]:
    """Two clients of one service."""
    with hostile_service() as service:
        setting = {"default": service.settings(), "second": service.settings(CLIENT_ID="client-2")}
        with override_settings(DJANGO_IDENTITY=setting):
            yield service


@every_way
@pytest.mark.parametrize(
    ("gate", "value", "is_open"),
    [
        ("age_over_18", None, True),
        ("unique_human", None, False),
        ("age_over_18 unique_human", None, False),
        ("unique_human age_over_18", None, False),
        ("country_resident", "NG", True),
        ("country_resident", "GH", False),
        ("country_resident", None, False),
        ("level_2", None, True),
        ("level_3", None, False),
    ],
)
def test_all_that_is_asked_for_must_hold(gated: Any, user: User, gate, value, is_open) -> None:
    """Every claim of several, the very value, the level: however the gate is written."""
    chosen = {} if value is None else {"value": value}
    assert ask(gated(gate, **chosen), user).status_code == (200 if is_open else 302)
    assert ask(gated(gate, **chosen), AnonymousUser()).status_code == 302


@every_way
@pytest.mark.parametrize(
    ("gate", "chosen", "missing"),
    [
        ("age_over_18 unique_human", {}, "unique_human"),
        ("country_resident", {"value": "GH"}, "country_resident%3DGH"),
        ("level_3", {}, "level_3"),
    ],
)
def test_a_redirect_names_what_is_missing(gated: Any, user: User, gate, chosen, missing) -> None:
    """The person is led to where it can be had, told which, and back; a POST is not repeated."""
    view = gated(gate, **chosen)
    assert ask(view, user)["Location"] == (
        f"/identity/login/?next=%2Fhere%2F%3Fa%3D1&missing={missing}"
    )
    assert ask(view, user, "post")["Location"] == f"/identity/login/?missing={missing}"


@every_way
@pytest.mark.parametrize(
    ("gate", "code", "missing"),
    [
        ("unique_human", "claim_missing", "unique_human"),
        ("level_3", "kyc_level_missing", "level_3"),
    ],
)
def test_a_closed_gate_forbids_if_that_was_chosen(gated: Any, user: User, gate, code, missing):
    """403 for a page, which no cache keeps; 401 or 403 and a code for JSON."""
    view = gated(gate, on_closed="forbid")
    page = ask(view, user, hx_request="true")
    assert (page.status_code, page["Cache-Control"]) == (403, "no-store, private")
    somebody, nobody = (
        ask(view, who, accept="application/json") for who in (user, AnonymousUser())
    )
    assert (somebody.status_code, nobody.status_code) == (403, 401)
    told = [json.loads(each.content) for each in (somebody, nobody)]
    assert [each["code"] for each in told] == [code, "not_signed_in"]
    assert [each["missing"] for each in told] == [missing, missing]


@every_way
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_closed_gate_asks_the_site_if_that_was_chosen(gated: Any, user: User, accept) -> None:
    """A callable decides for every asker, and hears why the gate is closed."""
    heard: list[Closed] = []

    def answer(request: HttpRequest, closed: Closed) -> HttpResponse:
        heard.append(closed)
        return HttpResponse(status=418)

    view = gated("country_resident", value="GH", on_closed=answer)
    assert ask(view, user, accept=accept).status_code == 418
    assert ask(view, AnonymousUser(), accept=accept).status_code == 418
    somebody, nobody = heard
    assert (somebody.code, somebody.missing) == ("claim_missing", "country_resident")
    assert (somebody.asked, somebody.application) == ("country_resident=GH", "default")
    assert (somebody.shortfall.reason, somebody.shortfall.held) == ("other_value", "NG")
    assert (nobody.code, nobody.shortfall) == ("not_signed_in", None)


@every_way
@pytest.mark.parametrize("gate", ["age_over_18", "level_2"])
@pytest.mark.usefixtures("two_applications")
def test_a_gate_asks_about_its_application(gated: Any, gate: str) -> None:
    """What one application was told opens no gate of another."""
    user = make_user()
    make_claim(make_identity(user, application="second"))
    assert ask(gated(gate, application="second"), user).status_code == 200
    closed = ask(gated(gate), user)
    assert closed["Location"].startswith("/identity/login/?")
    closed = ask(gated(gate, application="second"), make_user("eve"))
    assert closed["Location"].startswith("/identity/login/second/?")


@pytest.mark.usefixtures("two_applications")
def test_claims_are_of_one_application() -> None:
    """Two identities of one user are kept apart, also in what a request remembers."""
    user = make_user()
    make_claim(make_identity(user))
    make_claim(make_identity(user, application="second"), "unique_human")
    with CaptureQueriesContext(connection) as captured, a_request():
        for _ in range(3):
            assert claims_of(user) == {"age_over_18": True}
            assert claims_of(user, application="second") == {"unique_human": True}
    assert len(captured) == 2


def test_a_class_that_asks_for_nothing_is_a_mistake(user: User) -> None:
    """It closes loudly, and is never open by accident."""
    for forgotten in (ClaimRequiredMixin, KycLevelRequiredMixin):
        view = type("View", (forgotten, View), {"get": lambda *_: HttpResponse("in")}).as_view()
        with pytest.raises(ImproperlyConfigured):
            ask(view, user)
