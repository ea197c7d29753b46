"""The map as a text: every change of what a view asks for is a line."""

import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import URLResolver, path
from django.urls.resolvers import RoutePattern

from django_identity.gates import kyc_level_required
from tests.commands.run_command import run
from tests.gates.gated_views import Page, adult, async_view, view
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
