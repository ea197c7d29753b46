"""What has become more open since the map was stored: noticed, or named as not seen."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import URLResolver, clear_url_caches, path
from django.urls.resolvers import RoutePattern

from django_identity.gates import claim_required, kyc_level_required, site_map
from tests.gates import mapped_urls, replaced_urls
from tests.gates.gated_views import adult, async_view, view
from tests.gates.ways_to_gate import WAYS, handled

pytestmark = pytest.mark.urls("tests.gates.replaced_urls")

Change = Callable[[list[Any]], None]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Gives the site other URL patterns."""

    def change(patterns: list[Any]) -> None:
        monkeypatch.setattr(replaced_urls, "urlpatterns", patterns)
        clear_url_caches()

    return change


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return tmp_path / "gates.json"


def run(*options: Any) -> tuple[int, str]:
    """The command's exit code, and what it said."""
    output = io.StringIO()
    try:
        call_command("identity_gates", *options, stdout=output)
    except CommandError as error:
        return error.returncode, output.getvalue()
    return 0, output.getvalue()


def store(path: Path) -> None:
    path.write_text(run("--json")[1], "utf-8")


@pytest.mark.parametrize("way", WAYS)
def test_a_gate_that_is_opened_is_noticed_or_named(
    site: Change, stored: Path, way: str
) -> None:
    """However it was put. What the map cannot read, it says."""
    site(WAYS[way].patterns("gated"))
    store(stored)
    code, said = run("--diff", stored)
    assert (code, said.count("opened")) == (0, 0)
    site(WAYS[way].patterns("opened"))
    code, said = run("--diff", stored)
    if WAYS[way].hides:
        assert WAYS[way].hides in said + run()[1]
    else:
        assert (code, said.startswith("opened")) == (1, True), said
    site(WAYS[way].patterns("gated"))
    assert run("--diff", stored)[0] == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_gate_that_asks_for_more_does_not_fail(
    site: Change, stored: Path, way: str
) -> None:
    """So nobody learns to write the file anew without reading it."""
    site(WAYS[way].patterns("gated"))
    store(stored)
    site(WAYS[way].patterns("stricter"))
    code, said = run("--diff", stored)
    assert code == 0, said
    if not WAYS[way].hides:
        assert "stricter" in said


NO_CHANGE = {
    "the same": ([path("a/", adult(view))], [path("a/", adult(view))]),
    "an address that went": (
        [path("a/", adult(view)), path("b/", view)],
        [path("b/", view)],
    ),
    "a new address of a new view": (
        [path("a/", adult(view))],
        [path("b/", async_view)],
    ),
    "an open view at two addresses": (
        [path("a/", adult(view)), path("b/", view)],
        [path("a/", adult(view)), path("b/", view), path("c/", view)],
    ),
    "an answer": (
        [path("a/", adult(view))],
        [path("a/", claim_required("age_over_18", on_closed="forbid")(view))],
    ),
    "the order of values": (
        [path("a/", claim_required("country_resident=PT|FR")(view))],
        [path("a/", claim_required("country_resident=FR|PT")(view))],
    ),
    "a later pattern": (
        [path("a/", adult(view))],
        [
            path("a/", adult(view)),
            path("a/", async_view),
            path("<slug:page>/", async_view),
        ],
    ),
    "another name of the view": (
        [path("a/", adult(view))],
        [path("a/", claim_required("age_over_18")(async_view))],
    ),
}


@pytest.mark.parametrize("name", NO_CHANGE)
def test_what_is_no_change(site: Change, stored: Path, name: str) -> None:
    """Nobody is asked for less, so nothing is said."""
    before, now = NO_CHANGE[name]
    site(before)
    store(stored)
    site(now)
    code, said = run("--diff", stored)
    assert (code, said.startswith("not seen")) == (0, True), said


def test_the_change_says_both_demands(site: Change, stored: Path) -> None:
    """With the method, if the view asks for different things."""
    site([path("a/", handled(adult)), path("b/", kyc_level_required("level_2")(view))])
    store(stored)
    site([path("a/", handled()), path("b/", kyc_level_required("level_3")(view))])
    code, said = run("--diff", stored)
    lines = said.splitlines()
    assert code == 1
    assert (
        lines[0]
        == "opened    /a/  tests.gates.ways_to_gate.Door  POST age_over_18 -> open"
    )
    assert lines[1] == "stricter  /b/  tests.gates.gated_views.view  level_2 -> level_3"


UNREAD = mapped_urls.AsksNothing.as_view()
BROKEN = URLResolver(RoutePattern("a/"), "tests.gates.broken_urls")
NOT_READ = {
    "now": ([path("a/", adult(view))], [path("a/", UNREAD)]),
    "before": ([path("a/", UNREAD)], [path("a/", view)]),
    "both times": ([path("a/", UNREAD)], [path("a/", UNREAD)]),
    "a new address": ([path("b/", view)], [path("a/", UNREAD)]),
    "the include now": ([path("a/", adult(view))], [BROKEN]),
    "the include before": ([BROKEN], [path("a/", view)]),
    "an earlier pattern": (
        [path("a/", adult(view))],
        [path("<slug:page>/", UNREAD), path("a/", adult(view))],
    ),
    "one that was elsewhere": ([path("b/", UNREAD)], [path("a/", UNREAD)]),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_could_not_be_read_is_not_all_clear(
    site: Change, stored: Path, name: str
) -> None:
    """Now or before. Somebody who has looked at it names the address, and no other."""
    before, now = NOT_READ[name]
    site(before)
    store(stored)
    site(now)
    code, said = run("--diff", stored)
    assert code == 1
    assert said.startswith("not read")
    unread = [
        line.split()[2] for line in said.splitlines() if line.startswith("not read")
    ]
    allowed = [option for url in unread for option in ("--unread", url)]
    assert run("--diff", stored, *allowed)[0] == 0
    assert run("--diff", stored, "--unread", "/elsewhere/")[0] == 1


def edited(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda stored: stored | changes


def edited_address(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda stored: stored | {"addresses": [stored["addresses"][0] | changes]}


def edited_guard(demand: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    return edited_address(guards=[{"demand": demand, "closed": "forbid", "method": ""}])


NOT_OURS = "it is not what --json wrote"
NO_MAPS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a list": (lambda stored: [], NOT_OURS),
    "a number": (lambda stored: 7, NOT_OURS),
    "nothing": (lambda stored: None, NOT_OURS),
    "no version": (lambda stored: {"urlconf": stored["urlconf"]}, NOT_OURS),
    "another version": (edited(version=2), "it has version 2"),
    "another site": (edited(urlconf="shop.urls"), "it is of another site: shop.urls"),
    "no addresses": (edited(addresses=None), NOT_OURS),
    "a number for an address": (edited(addresses=[7]), NOT_OURS),
    "no view": (edited(addresses=[{"url": "/a/"}]), NOT_OURS),
    "a guard without a demand": (edited_address(guards=[{}]), NOT_OURS),
    "a demand of no kind": (edited_guard({"kind": "Nothing"}), NOT_OURS),
    "a demand of nothing": (edited_guard({"kind": "Every"}), NOT_OURS),
    "a claim that is none": (
        edited_guard({"kind": "RequiredClaim", "claim_type": "a|b", "values": []}),
        NOT_OURS,
    ),
    "methods that are none": (edited_address(methods=7), NOT_OURS),
}


@pytest.mark.parametrize("name", NO_MAPS)
def test_a_file_that_is_no_map_of_this_site(
    site: Change, stored: Path, name: str
) -> None:
    """It is refused with the reason, and never read as a site without gates."""
    edit, why = NO_MAPS[name]
    site([path("a/", adult(view))])
    store(stored)
    stored.write_text(json.dumps(edit(json.loads(stored.read_text("utf-8")))), "utf-8")
    with pytest.raises(CommandError, match=re.escape(why)):
        call_command("identity_gates", "--diff", stored)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\ud800"])
def test_a_file_that_is_no_json(stored: Path, text: str) -> None:
    """Neither is one that is not there."""
    stored.write_bytes(text.encode("utf-8", "surrogatepass"))
    for path_ in (stored, stored.parent / "nothing.json"):
        with pytest.raises(CommandError, match="cannot be compared with"):
            call_command("identity_gates", "--diff", path_)


def test_the_stored_file_names_its_version_and_its_blind_spots(
    site: Change, stored: Path
) -> None:
    """Whoever reads it later knows what it is worth."""
    site([path("a/", adult(view))])
    store(stored)
    written = json.loads(stored.read_text("utf-8"))
    assert (written["version"], written["urlconf"]) == (1, "tests.gates.replaced_urls")
    assert written["not_seen"] == list(site_map.never_seen())
