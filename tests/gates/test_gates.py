"""What a gate answers: nothing of its own where it is open; closed, it says what is missing."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from django_identity.gates import (
    Closed,
    KycLevelRequiredMixin,
    claim_required,
    kyc_level_required,
)
from django_identity.models import LinkedIdentity
from tests.factories import again
from tests.gates.gated_views import SECRET, AsyncPage, Page, answer_of, async_view, view

pytestmark = pytest.mark.django_db(transaction=True)


def told(request: HttpRequest, closed: Closed) -> HttpResponse:
    return HttpResponse(closed.missing, status=418)


def decorated(page: Any, **chosen: Any) -> Any:
    return kyc_level_required("level_3", **chosen)(page)


def mixed(page: Any, **chosen: Any) -> Any:
    asked = {"required_kyc_level": "level_3", **chosen}
    return type("Gated", (KycLevelRequiredMixin, page), asked).as_view()


WAYS = {
    "view": lambda **chosen: decorated(view, **chosen),
    "async view": lambda **chosen: decorated(async_view, **chosen),
    "class": lambda **chosen: mixed(Page, **chosen),
    "async class": lambda **chosen: mixed(AsyncPage, **chosen),
}


def test_a_redirect_names_what_is_missing(user):
    """The person is led to where it can be had, told which, and back; a POST is not repeated."""
    for gated in WAYS.values():
        assert answer_of(gated(), user)["Location"] == (
            "/identity/login/?next=%2Fhere%2F%3Fa%3D1&missing=level_3"
        )
        posted = answer_of(gated(), user, "post")
        assert posted["Location"] == "/identity/login/?missing=level_3"
        assert answer_of(gated(), AnonymousUser()).status_code == 302
        htmx = answer_of(gated(), AnonymousUser(), hx_request="true")
        assert htmx.status_code == 204
        assert htmx["HX-Redirect"][:17] == "/identity/login/?"
    LinkedIdentity.objects.update(kyc_level="level_3")
    assert all(
        answer_of(gated(), again(user)).content == SECRET for gated in WAYS.values()
    )


def test_the_first_that_is_missing_is_named(user):
    """With the very value."""
    for claims, missing in (
        (("age_over_18", "unique_human", "country_resident=GH"), "unique_human"),
        (("country_resident=GH",), "country_resident%3DGH"),
    ):
        location = answer_of(claim_required(*claims)(view), user)["Location"]
        assert location == f"/identity/login/?next=%2Fhere%2F%3Fa%3D1&missing={missing}"


def test_a_closed_gate_forbids_if_that_was_chosen(user):
    """403 for a page, which no cache keeps; 401 or 403 and a code for JSON."""
    for gated in WAYS.values():
        page = answer_of(gated(on_closed="forbid"), user, hx_request="true")
        assert (page.status_code, page["Cache-Control"]) == (403, "private, no-store")
        # It has a button that signs somebody in.
        assert page["X-Frame-Options"] == "DENY"
        said = answer_of(
            gated(on_closed="forbid"), AnonymousUser(), accept="application/json"
        )
        assert said.status_code == 401
        assert json.loads(said.content)["code"] == "not_signed_in"


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


@pytest.mark.parametrize(
    "thing", [Page, ([], "shop", "shop"), "shop.views.bar", None], ids=repr
)
def test_a_gate_stands_around_a_view(thing):
    """A class or an ``include()`` would fail at a request, and not say why."""
    with pytest.raises(ImproperlyConfigured, match="For a class use a mixin"):
        claim_required("age_over_18")(thing)
