"""The map as a text: every change of what a view asks for is a line, or is named as not seen."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import URLResolver, clear_url_caches, path
from django.urls.resolvers import RoutePattern

from django_identity.gates import claim_required, kyc_level_required
from tests.gates.gated_views import adult, async_view, view
from tests.instruments import mapped_urls, replaced_urls
from tests.instruments.ways_to_gate import WAYS, handled

pytestmark = pytest.mark.urls("tests.instruments.replaced_urls")

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
    return tmp_path / "gates.txt"


def run(*options: Any) -> tuple[int, list[str]]:
    """The command's exit code, and what it said."""
    output = io.StringIO()
    try:
        call_command("identity_gates", *options, stdout=output)
    except CommandError as error:
        return error.returncode, output.getvalue().splitlines()
    return 0, output.getvalue().splitlines()


def store(path: Path, *options: str) -> None:
    path.write_text("\n".join(run(*options)[1]) + "\n", "utf-8")


@pytest.mark.parametrize("change", ["opened", "stricter"])
@pytest.mark.parametrize("way", WAYS)
def test_each_change_of_a_gate_is_a_line_or_named(
    site: Change, stored: Path, way: str, change: str
) -> None:
    """However it was put. What the map cannot read, it says."""
    site(WAYS[way].patterns("gated"))
    store(stored)
    assert run("--check", stored) == (0, [])
    site(WAYS[way].patterns(change))
    code, said = run("--check", stored)
    if WAYS[way].hides:
        assert any(WAYS[way].hides in line for line in run()[1])
    else:
        assert code == 1
        assert any(line.startswith(("-/", "+/")) for line in said), said
    site(WAYS[way].patterns("gated"))
    assert run("--check", stored) == (0, [])


def test_a_changed_line_says_both_demands(site: Change, stored: Path) -> None:
    """With the methods, if the view asks for different things; and nothing of the others."""
    same = [path("hall/", adult(view)), path("yard/", view)]
    site([path("a/", handled(adult)), path("b/", adult(view)), *same])
    store(stored)
    site(
        [path("a/", handled()), path("b/", kyc_level_required("level_2")(view)), *same]
    )
    code, said = run("--check", stored)
    assert code == 1
    assert [line.split() for line in said] == [
        ["-/a/", "GET", "open"],
        ["-/a/", "POST", "age_over_18", "(redirect)"],
        ["-/b/", "any", "age_over_18", "(redirect)"],
        ["+/a/", "GET,POST", "open"],
        ["+/b/", "any", "level_2", "(redirect)"],
    ]


def test_a_new_address_changes_its_own_line_alone(site: Change, stored: Path) -> None:
    """However long: the columns do not move."""
    site([path("a/", adult(view))])
    store(stored)
    site([path("a/", adult(view)), path(f"{'long' * 20}/", view)])
    code, said = run("--check", stored)
    assert (code, len(said)) == (1, 1)
    assert said[0].startswith("+/longlong")


def test_an_order_that_changes_is_seen(site: Change, stored: Path) -> None:
    """Which pattern answers is not seen; that their order is another one is."""
    site([path("<slug:page>/", view), path("loans/", adult(view))])
    store(stored)
    site([path("loans/", adult(view)), path("<slug:page>/", view)])
    assert run("--check", stored)[0] == 1
    assert "not seen: an earlier pattern that answers" in run()[1]


UNREAD = mapped_urls.AsksNothing.as_view()
BROKEN = URLResolver(RoutePattern("a/"), "tests.instruments.broken_urls")
GATED = [path("a/", adult(view))]
NOT_READ = {
    "now": (GATED, [path("a/", UNREAD)]),
    "before": ([path("a/", UNREAD)], [path("a/", view)]),
    "a new address": ([path("b/", view)], [path("a/", UNREAD)]),
    "the include now": (GATED, [BROKEN]),
    "the include before": ([BROKEN], [path("a/", view)]),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_could_not_be_read_is_a_line(
    site: Change, stored: Path, name: str
) -> None:
    """Now or before. Whoever has looked at it writes the file anew."""
    before, now = NOT_READ[name]
    site(before)
    store(stored)
    site(now)
    code, said = run("--check", stored)
    assert code == 1
    assert any("not read: " in line for line in said)
    store(stored)
    assert run("--check", stored) == (0, [])


def test_the_map_of_another_site(site: Change, stored: Path, settings: Any) -> None:
    """Its addresses are not here, and those that are here are new."""
    site([path("a/", adult(view))])
    store(stored)
    settings.ROOT_URLCONF = "tests.urls"
    code, said = run("--check", stored)
    assert code == 1
    assert any(line.startswith("-/a/") for line in said)
    assert any(line.startswith("+/gated/") for line in said)


@pytest.mark.parametrize("text", ["", "{}", "\x00", "not seen", "[" * 100_000])
def test_a_file_that_is_no_map(site: Change, stored: Path, text: str) -> None:
    """It is never read as a site without gates, nor as one that has not changed."""
    site([path("a/", adult(view))])
    stored.write_text(text)
    code, said = run("--check", stored)
    assert code == 1
    assert any(line.startswith("+/a/") for line in said)


def test_a_file_that_cannot_be_read(stored: Path) -> None:
    stored.write_bytes(b"\xff\xfe/\x00a\x00")
    for file in (stored, stored.parent / "nothing.txt", stored.parent):
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("identity_gates", "--check", file)


def test_a_site_without_gates(site: Change, stored: Path) -> None:
    site([path("a/", view), path("b/", async_view)])
    lines = run()[1]
    assert [line.split() for line in lines[1:3]] == [
        ["/a/", "any", "open"],
        ["/b/", "any", "open"],
    ]
    store(stored)
    assert run("--check", stored) == (0, [])


def test_options_give_a_map_of_their_own(site: Change, stored: Path) -> None:
    """The open addresses alone, for a file that lists what has to be open."""
    site([path("a/", adult(view)), path("b/", view)])
    store(stored, "--open")
    assert run("--check", stored, "--open") == (0, [])
    site([path("a/", view), path("b/", view)])
    assert run("--check", stored, "--open")[0] == 1


def test_one_opened_address_among_many_is_the_only_line(
    site: Change, stored: Path
) -> None:
    """A site of ten thousand patterns is compared in seconds."""
    gated = claim_required("age_over_18")(view)
    others = [path(f"pages/{number}/", gated) for number in range(10_000)]
    site([*others[:5000], path("door/", gated), *others[5000:]])
    store(stored)
    site([*others[:5000], path("door/", view), *others[5000:]])
    began = time.process_time()
    code, said = run("--check", stored)
    assert [line[:7] for line in said] == ["-/door/", "+/door/"]
    assert code == 1
    assert time.process_time() - began < 20
