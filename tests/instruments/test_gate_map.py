"""The map of gates says of every address what it asks for, and what it could not see."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path
from django.views import View

from django_identity.gates import (
    ClaimRequiredMixin,
    KycLevelRequiredMixin,
)
from django_identity.instruments import gate_map
from django_identity.instruments.gate_map import addresses
from tests.gates.gated_views import Page, adult, answer_of, async_view, view
from tests.instruments import mapped_urls
from tests.instruments.conftest import listed

pytestmark = pytest.mark.urls("tests.instruments.mapped_urls")


def test_what_every_address_asks_for():
    """In the order in which a request meets it."""
    asked = {
        address.url: [guard.asks for guard in address.reading.guards]
        for address in addresses()
    }
    assert asked == {
        "/": [],
        "/one/": ["age_over_18, country_resident=NG"],
        "/two/": ["level_2", "age_over_18"],
        "/partial/": ["age_over_18"],
        "/nameless/": [],
        "/adults/": ["age_over_18"],
        "/at-url/": ["unique_human", "age_over_18"],
        "/added/": ["age_over_18", "country_resident=NG", "level_2"],
        "/decorated/": ["age_over_18", "level_2", "country_resident=NG"],
        "/decorated-twice/": ["level_2", "age_over_18"],
        "/nothing/": [],
        "/api/": ["(age_over_18 & ~(level_3 | IsAdminUser))"],
        "/api/function/": ["level_1"],
        "/a/door/": ["age_over_18"],
        "/b/door/": ["age_over_18"],
        "/broken/": [],
        r"/^old/(?P<number>\d+)/$": [],
        "/en/hello/": ["age_over_18"],
    }


class Between(View):
    """It would show something before the gate of a mixin that stands behind it."""

    required_scope = "of somebody else's"

    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        raise AssertionError("the outer gate is closed")


class Sandwich(ClaimRequiredMixin, Between, KycLevelRequiredMixin, View):
    required_claims = ("age_over_18",)
    required_kyc_level = "level_2"


@pytest.mark.urls("tests.urls")
def test_a_class_between_two_mixins():
    """The outer gate is asked first."""
    assert answer_of(Sandwich.as_view(), AnonymousUser()).status_code == 302
    assert [str(gate) for gate in Sandwich().gates()] == ["age_over_18", "level_2"]


def test_a_list_of_gates_has_each_gate_once():
    assert [str(gate) for gate, _urls in gate_map.guarded()] == [
        "age_over_18, country_resident=NG", "level_2", "age_over_18", "unique_human",
        "country_resident=NG", "level_3", "level_1",
    ]  # fmt: skip


def test_the_list_names_what_is_open_or_unreadable():
    """What could not be read may be open; its error is named by its class alone."""
    assert listed()[1] == "/one/; any; age_over_18, country_resident=NG (tell); tell()"
    assert listed("--open")[:5] == [
        "/; any; open",
        "/nameless/; any; open",
        "/nothing/; not read: ImproperlyConfigured",
        "/broken/; not read: LookupError",
        r"/^old/(?P<number>\d+)/$; any; open",
    ]


def test_every_list_ends_with_what_no_map_sees():
    """A list that is silent about its blind spots reads like a promise."""
    blind_spots = [f"not seen: {each}" for each in gate_map.never_seen()]
    assert "URLconfs beside tests.instruments.mapped_urls" in blind_spots[-1]
    for blind in (
        "what a view's own code asks", "in an object that is called", "an earlier pattern"
    ):  # fmt: skip
        assert any(blind in each for each in blind_spots)
    for options in ((), ("--open",)):
        assert listed(*options)[-len(blind_spots) :] == blind_spots


@pytest.mark.urls("tests.urls")
def test_the_sites_own_pages_stand_first():
    """The open pages of the admin and of this package are one line each, unless asked for."""
    lines = [line for line in listed() if not line.startswith("not seen")]
    assert [line.split(";")[0] for line in lines[:3]] == [
        "/gated/",
        "/",
        "/accounts/login/",
    ]
    assert [line.partition(":")[0] for line in lines[3:]] == [
        "Django's admin",
        "this package",
    ]
    assert sum(line.startswith("/admin/") for line in listed("--all")) > 20


@pytest.mark.urls("tests.instruments.broken_urls")
def test_a_urlconf_that_cannot_be_imported():
    """Nothing is known, and that is what the list says."""
    assert listed()[0] == "/; not read: LookupError"


class Raises(Page):
    """A mistake of the site."""

    def __init__(self, **initkwargs: Any) -> None:
        raise ZeroDivisionError


UNUSUAL = {
    "lambda": lambda request: None,
    "partial": partial(view, page=1),
    "nested partials": partial(partial(partial(view))),
    "instance": mapped_urls.Nameless(),
    "bound method": mapped_urls.Nameless().__call__,
    "built-in": len,
    "class": mapped_urls.Nameless,
    "async": async_view,
    "raises when made": Raises.as_view(),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_view_of_any_kind_is_listed(site, name):
    """With a gate before it or without."""
    site(path("plain/", UNUSUAL[name]), path("gated/", adult(UNUSUAL[name])))
    plain, gated = listed()[:2]
    assert plain.startswith("/plain/")
    assert "age_over_18 (redirect)" in gated


def test_a_wrapper_in_a_circle_ends(site):
    """Each layer is looked at once."""

    def first(request: HttpRequest) -> None: ...

    def second(request: HttpRequest) -> None: ...

    first.__wrapped__ = second  # type: ignore[attr-defined]
    second.__wrapped__ = first  # type: ignore[attr-defined]
    site(path("door/", first))
    assert "open" in listed()[0]
