"""What a gate answers: nothing of its own where it is open; closed, it says what is missing."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils.translation import override

from django_identity.gates import (
    Closed,
    Gate,
    KycLevelRequiredMixin,
    claim_required,
    closed_response,
    closed_to,
    kyc_level_required,
)
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.texts.labels import heading_of
from tests.factories import again
from tests.gates.gated_views import SECRET, AsyncPage, Page, answer_of, async_view, view
from tests.urls import urlpatterns as other_patterns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

# Over six: the page counts them, and names them where they are folded.
EUROPE = (
    "AT|BE|BG|HR|CY|CZ|DK|EE|FI|FR|DE|GR|HU|IE|IT|LV|LT|LU|MT|NL|PL|PT|RO|SK|SI|ES|SE"
)
european = claim_required(f"country_resident={EUROPE}")
neighbourly = claim_required("country_resident=GH|PT|FR", on_closed="forbid")
urlpatterns = [
    path("europe/", european(view)),
    path("neighbours/", neighbourly(view)),
    *other_patterns,
]


def told(request: HttpRequest, closed: Closed) -> HttpResponse:
    return HttpResponse(closed.missing, status=418)


def decorated(page: Any, **chosen: Any) -> Any:
    return kyc_level_required("level_3", **chosen)(page)


def mixed(page: Any, **chosen: Any) -> Any:
    asked = {"required_kyc_level": "level_3", **chosen}
    return type("Gated", (KycLevelRequiredMixin, page), asked).as_view()


def asking(**chosen: Any) -> Any:
    """A view with a question of its own."""

    def page(request: HttpRequest) -> Any:
        closed = closed_to(Gate(kyc_level="level_3"), request.user)
        if closed is not None:
            return closed_response(request, closed, **chosen)
        return view(request)

    return page


WAYS = {
    "view": lambda **chosen: decorated(view, **chosen),
    "async view": lambda **chosen: decorated(async_view, **chosen),
    "class": lambda **chosen: mixed(Page, **chosen),
    "async class": lambda **chosen: mixed(AsyncPage, **chosen),
    "own question": asking,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_redirect_names_what_is_missing(user, way):
    """The person is led to where it can be had, told which, and back; a POST is not repeated."""
    gated = WAYS[way]()

    answer = answer_of(gated, user)
    posted = answer_of(gated, user, "post")
    htmx = answer_of(gated, AnonymousUser(), hx_request="true")

    back = "next=%2Fhere%2F%3Fa%3D1&missing=level_3"
    assert answer["Location"] == f"/identity/login/?{back}"
    assert posted["Location"] == "/identity/login/?missing=level_3"
    assert answer_of(gated, AnonymousUser()).status_code == 302
    assert htmx.status_code == 204
    assert htmx["HX-Redirect"][:17] == "/identity/login/?"
    LinkedIdentity.objects.update(kyc_level="level_3")
    assert answer_of(gated, again(user)).content == SECRET
    # Of several claims the first that is missing, with the very value.
    several = claim_required("age_over_18", "country_resident=GH", "unique_human")
    location = answer_of(several(view), user)["Location"]
    assert location.endswith("&missing=country_resident%3DGH")


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_gate_forbids_if_that_was_chosen(user, way):
    """403 for a page, which no cache keeps; 401 or 403 and a code for JSON."""
    gated = WAYS[way](on_closed="forbid")

    page = answer_of(gated, user, hx_request="true")
    said = answer_of(gated, AnonymousUser(), accept="application/json")

    assert (page.status_code, page["Cache-Control"]) == (403, "private, no-store")
    # It has a button that signs somebody in.
    assert page["X-Frame-Options"] == "DENY"
    assert said.status_code == 401
    assert json.loads(said.content)["code"] == "not_signed_in"


@pytest.mark.parametrize("accept", ["text/html", "*/*", "", "image/png"])
@pytest.mark.parametrize("way", WAYS)
def test_a_problem_whatever_the_request_accepts(user, way, accept):
    """For views that answer JSON alone. A cache keeps it for nobody else."""
    gated = WAYS[way](on_closed="problem")
    for asker, status in ((user, 403), (AnonymousUser(), 401)):
        answer = answer_of(gated, asker, accept=accept, hx_request="true")
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["missing"] == "level_3"
        assert answer["Cache-Control"] == "private"
        assert "Cookie" in answer["Vary"]
        assert answer.get("WWW-Authenticate") == ("Session" if status == 401 else None)


@pytest.mark.parametrize("on_closed", [None, "", "forbidden", 403])
def test_an_answer_that_there_is_not_is_an_error(user, on_closed):
    """And no redirect that the site did not mean."""
    with pytest.raises(
        ImproperlyConfigured, match='"redirect", "forbid", "problem" or a callable'
    ):
        answer_of(asking(on_closed=on_closed), user)


def test_a_callable_answers_for_a_closed_gate(user):
    """For every asker, and hears why the gate is closed."""
    heard: list[Closed] = []

    def answer(request: HttpRequest, closed: Closed) -> HttpResponse:
        heard.append(closed)
        return HttpResponse(status=418)

    gated = claim_required("country_resident=GH", on_closed=answer)(view)
    for asker in (user, AnonymousUser()):
        for accept in ("text/html", "application/json"):
            assert answer_of(gated, asker, accept=accept).status_code == 418
    somebody, _, nobody, _ = heard
    assert (somebody.code, somebody.missing) == ("claim_missing", "country_resident")
    assert somebody.asked == "country_resident=GH"
    assert (somebody.shortfall.reason, somebody.shortfall.held) == ("other_value", "NG")
    assert (nobody.code, nobody.shortfall) == ("not_signed_in", None)


def test_a_class_may_answer_itself(user):
    """A method has its view; a function of the request stands there as a static method."""

    class Gated(KycLevelRequiredMixin, Page):
        required_kyc_level = "level_3"
        on_closed = staticmethod(told)

    class Own(Gated):
        def on_closed(self, request: HttpRequest, closed: Closed) -> HttpResponse:
            return HttpResponse(f"{type(self).__name__} {closed.missing}")

    assert answer_of(Gated.as_view(), user).content == b"level_3"
    assert answer_of(Own.as_view(), user).content == b"Own level_3"
    assert answer_of(Own.as_view(on_closed=told), user).content == b"level_3"


def test_an_answer_that_is_none_opens_nothing(user):
    """Django says that the site's function forgot its response."""
    for way in ("view", "async view"):
        gated = WAYS[way](on_closed=lambda request, closed: None)
        assert answer_of(gated, user) is None


# A claim with one of several values


def test_the_person_is_told_all_of_them(user):
    """In the problem's ``missing`` as the site wrote them, in its detail in words."""
    assert closed_to(Gate("country_resident=GH|NG|PT"), user) is None
    closed = closed_to(Gate("country_resident=PT|FR|ES"), user)
    assert closed is not None
    assert closed.missing == "country_resident"
    assert closed.problem()["missing"] == "country_resident=PT|FR|ES"
    with override("fr"):
        assert ": Portugal, France ou Espagne" in heading_of(closed.asked)


def test_a_few_are_named_and_many_are_counted(user, monkeypatch):
    """The names of many are there, folded. The site explains the claim once, for all values."""
    why = "We deliver nowhere else."
    monkeypatch.setattr(IdentityPolicy, "reasons", {"country_resident": why})
    browser, stranger = Client(), Client()
    browser.force_login(user)

    few = browser.get("/neighbours/").content.decode()

    assert "You need to live in Ghana, Portugal or France" in few
    assert why in few
    assert "Show the countries" not in few
    for reader in (browser, stranger):
        many = reader.get("/europe/", follow=True).content.decode()
        assert "You need to live in one of 27 countries" in many
        assert "<li>Slovenia</li>" in many
    for language, words in (("ar", "أحد 27 بلدًا"), ("pt-br", "um de 27 países")):
        with override(language):
            assert words in heading_of(f"country_resident={EUROPE}")
