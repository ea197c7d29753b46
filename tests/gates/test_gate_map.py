"""The map of gates says of every URL what it asks for, and what has become more open."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import clear_url_caches, path
from django.views import View

from django_identity import gate_map
from django_identity.gates import ClaimRequiredMixin, KycLevelRequiredMixin
from tests.gates import mapped
from tests.gates.gated import answer_of

URLS = "tests.gates.mapped"
WHOLE = gate_map.Requirement("age_over_18", "default", "redirect", ())
pytestmark = pytest.mark.urls(URLS)


def listed(*options: Any) -> str:
    output = io.StringIO()
    call_command("identity_gates", *options, stdout=output)
    return output.getvalue()


def test_what_every_url_asks_for() -> None:
    found = gate_map.entrances()
    assert {each.url: [one.text for one in each.requirements] for each in found} == {
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
        "/<language>/hello/": ["age_over_18"],
    }


class Between(View):
    """It would show something before the gate of a mixin that stands behind it."""

    required_scope = "of somebody else's"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        raise AssertionError("the outer gate is closed")


class Sandwich(ClaimRequiredMixin, Between, KycLevelRequiredMixin, View):
    required_claims = ("age_over_18",)
    required_kyc_level = "level_2"


@pytest.mark.urls("tests.urls")
def test_a_class_between_two_mixins() -> None:
    assert answer_of(Sandwich.as_view(), AnonymousUser()).status_code == 302
    assert [str(gate) for gate in Sandwich().gates()] == ["age_over_18", "level_2"]


def test_each_gate_once() -> None:
    assert [str(gate) for gate in gate_map.gates()] == [
        "age_over_18, country_resident=NG", "level_2", "age_over_18", "unique_human",
        "country_resident=NG", "level_3", "level_1",
    ]  # fmt: skip


def test_the_list() -> None:
    """What could not be read may be open; its error is said by its class alone."""
    lines = listed().splitlines()
    view = "tests.gates.gated.view"
    assert f"/one/  {view}  age_over_18, country_resident=NG (default, tell)" in lines
    assert listed("--open").splitlines() == [
        f"/  {view}  open",
        "/nameless/  tests.gates.mapped.Nameless  open",
        "/nothing/  tests.gates.mapped.AsksNothing  ImproperlyConfigured",
        "/broken/    LookupError",
        rf"/^old/(?P<number>\d+)/$  {view}  open",
    ]


def test_a_change_that_opens_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that goes to another address; what asks for more, or goes, is no matter."""
    old = tmp_path / "old.json"
    old.write_text(listed("--json"), "utf-8")
    assert listed("--diff", old) == ""
    changed = [each for each in mapped.urlpatterns if str(each.pattern) not in ("two/", "adults/")]
    changed[0] = path("", mapped.adult(mapped.open_view))
    changed += [
        path("two/", mapped.adult(mapped.lent)),
        path("moved/", mapped.Adults.as_view()),
        path("second/", mapped.lent),
    ]
    monkeypatch.setattr(mapped, "urlpatterns", changed)
    clear_url_caches()
    output = io.StringIO()
    with pytest.raises(CommandError, match="2 URL"):
        call_command("identity_gates", "--diff", old, stdout=output)
    assert [line.split()[0] for line in output.getvalue().splitlines()] == ["/two/", "/second/"]


def test_of_two_views_at_one_address_the_first_answers() -> None:
    """So a gate that a site put above an include of pages is missed when it goes.

    A view that raises shows nothing.
    """
    gated, shown = gate_map.Entrance("/a/", "gated", (WHOLE,)), gate_map.Entrance("/a/", "shown")
    raises = gate_map.Entrance("/a/", "gated", error="ValueError")
    for before, now, expected in (
        ([gated, shown], [gated, shown], []),
        ([gated, shown], [shown], [shown]),
        ([gated, shown], [shown, gated], [shown]),
        ([shown, gated], [shown], []),
        ([gated], [raises], []),
    ):
        assert list(gate_map.opened([each.as_json() for each in before], now)) == expected


@pytest.mark.urls("tests.gates.broken_urls")
def test_a_urlconf_that_cannot_be_imported() -> None:
    assert listed() == "/    LookupError\n"


@pytest.mark.parametrize("held", ["", "{}", "[1]", "7", '[{"url": "/"}]'])
def test_a_file_that_is_no_map(tmp_path: Path, held: str) -> None:
    old = tmp_path / "old.json"
    old.write_text(held, "utf-8")
    with pytest.raises(CommandError, match="is not what --json wrote"):
        call_command("identity_gates", "--diff", old)
