"""The map of gates says of every address what it asks for, and every change of it is a line."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLResolver, path
from django.urls.resolvers import RoutePattern
from django.views import View

from django_identity.gates import (
    ClaimRequiredMixin,
    KycLevelRequiredMixin,
    kyc_level_required,
)
from django_identity.instruments import gate_map
from django_identity.instruments.gate_map import addresses
from tests.commands.run_command import run
from tests.gates.gated_views import Page, adult, answer_of, async_view, view
from tests.instruments import mapped_urls
from tests.instruments.conftest import Change, listed
from tests.instruments.ways_to_gate import (
    PAIRS,
    WAYS,
    on_method,
    opened,
    page,
    patterns,
    verified_adult,
)

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
        "/nameless/": [],
        "/at-url/": ["unique_human", "age_over_18"],
        "/added/": ["age_over_18", "country_resident=NG", "level_2"],
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
        self,
        request: HttpRequest,
        *args: Any,
        **kwargs: Any,
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
        "age_over_18, country_resident=NG",
        "level_2",
        "age_over_18",
        "unique_human",
        "country_resident=NG",
        "level_3",
        "level_1",
    ]


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
        "what a view's own code asks",
        "in an object that is called",
        "an earlier pattern",
    ):
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


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return tmp_path / "gates.txt"


def store(path: Path, *options: str) -> None:
    path.write_text(run("identity_gates", *options).out, "utf-8")


def changed(stored: Path, *options: str) -> list[str]:
    """What ``--check`` says, with exit code 1, or nothing, with 0."""
    ran = run("identity_gates", "--check", stored, *options)
    assert ran.code == bool(ran.out)
    return ran.out.splitlines()


def is_change(site: Change, stored: Path, before: Any, after: Any) -> bool:
    """Whether it is a line, and the way back is none."""
    site(*patterns(before))
    store(stored)
    site(*patterns(after))
    said = changed(stored)
    site(*patterns(before))
    assert changed(stored) == []
    return any(line.startswith(("-/", "+/")) for line in said)


@pytest.mark.parametrize("other", [opened, verified_adult], ids=["opened", "stricter"])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_gate_is_read(site, stored, way, other):
    assert is_change(site, stored, WAYS[way](adult), WAYS[way](other))


@pytest.mark.parametrize("pair", PAIRS)
def test_each_change_of_what_is_asked_for_is_a_line(site, stored, pair):
    """Whether it opens or closes."""
    before, after = PAIRS[pair]
    assert is_change(site, stored, before, after)
    assert is_change(site, stored, after, before)


def test_a_changed_line_says_both_demands(site, stored):
    """With the methods, if the view asks for different things; and nothing of the others."""
    same = [path("hall/", adult(view)), path("yard/", view)]
    form = page(post=on_method(adult, Page.post))
    site(path("a/", form), path("b/", adult(view)), *same)
    store(stored)
    site(path("a/", page()), path("b/", kyc_level_required("level_2")(view)), *same)

    assert [line.split() for line in changed(stored)] == [
        ["-/a/", "GET", "open"],
        ["-/a/", "POST", "age_over_18", "(redirect)"],
        ["-/b/", "any", "age_over_18", "(redirect)"],
        ["+/a/", "GET,POST", "open"],
        ["+/b/", "any", "level_2", "(redirect)"],
    ]


def test_a_new_address_changes_its_own_line_alone(site, stored):
    """However long: the columns do not move."""
    site(path("a/", adult(view)))
    store(stored)
    site(path("a/", adult(view)), path(f"{'long' * 20}/", view))
    [line] = changed(stored)
    assert line.startswith("+/longlong")


UNREAD = mapped_urls.AsksNothing.as_view()
BROKEN = [URLResolver(RoutePattern("a/"), "tests.instruments.broken_urls")]
GATED = [path("a/", adult(view))]
NOT_READ = {
    "now": (GATED, [path("a/", UNREAD)]),
    "before": ([path("a/", UNREAD)], [path("a/", view)]),
    "a new address": ([path("b/", view)], [path("a/", UNREAD)]),
    "the include now": (GATED, BROKEN),
    "the include before": (BROKEN, [path("a/", view)]),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_could_not_be_read_is_a_line(site, stored, name):
    """Now or before. Whoever has looked at it writes the file anew."""
    before, now = NOT_READ[name]
    site(*before)
    store(stored)
    site(*now)
    assert any("not read: " in line for line in changed(stored))
    store(stored)
    assert changed(stored) == []


@pytest.mark.parametrize("text", ["", "{}", "\x00", "not seen", "[" * 100_000])
def test_a_file_that_is_no_map(site, stored, text):
    """It is never read as a site without gates, nor as one that has not changed."""
    site(*GATED)
    stored.write_text(text)
    assert any(line.startswith("+/a/") for line in changed(stored))


def test_a_file_that_cannot_be_read(stored):
    stored.write_bytes(b"\xff\xfe/\x00a\x00")
    for file in (stored, stored.parent / "nothing.txt", stored.parent):
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("identity_gates", "--check", file)


def test_a_site_without_gates(site, stored):
    site(path("a/", view), path("b/", async_view))
    assert listed()[:2] == ["/a/; any; open", "/b/; any; open"]
    store(stored)
    assert changed(stored) == []


def test_options_give_a_map_of_their_own(site, stored):
    """The open addresses alone, for a file that lists what has to be open."""
    site(*GATED, path("b/", view))
    store(stored, "--open")
    assert changed(stored, "--open") == []
    site(path("a/", view), path("b/", view))
    assert changed(stored, "--open") != []


def test_one_opened_address_among_many_is_the_only_line(site, stored):
    """A large site, with addresses of every kind, is compared in seconds."""
    gated = adult(view)
    others = [
        *(path(f"pages/{number}/", gated) for number in range(4000)),
        *(path(f"shops/{number}/<int:key>/", gated) for number in range(1000)),
        *(path(f"<slug:page>/{number}/", gated) for number in range(200)),
    ]
    site(*others[:2000], path("door/", gated), *others[2000:])
    store(stored)
    site(*others[:2000], path("door/", view), *others[2000:])

    began = time.process_time()
    assert [line[:7] for line in changed(stored)] == ["-/door/", "+/door/"]
    assert time.process_time() - began < 20
