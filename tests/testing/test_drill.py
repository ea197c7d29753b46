"""The parts of the drill, in the tests' own world. ``tests/sites/test_drill.py`` has whole ones."""

import re
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.http import HttpResponse

from django_identity import conf
from django_identity.instruments import gate_map
from django_identity.management.commands import identity_drill
from django_identity.policy import IdentityPolicy
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import Door, doors_of, outcome_of
from django_identity.testing.drill.person import Scene
from django_identity.testing.drill.report import Report
from django_identity.testing.drill.walk import Visitor
from django_identity.testing.sandbox import RunningSandbox
from tests.commands.run_command import run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.testing.drilled_urls"),
]
STEPS = (
    "nobody",
    "unproven",
    "proven",
    "revoked",
    "ended",
    "run out",
    "erased",
    "disconnected",
    "local",
)
#: Among them an address whose own code asks.
EXAMPLES = ("/loans/1/", "/loans/2/", "/nowhere/", "/members/=age_over_18")
ROWS = {
    "/bar/": ["ok ok ok ok ok ok ok ok ok"],
    "/members/": ["- ok ok ok - ok - - ok", "-: it answers 404"],
    "/teaser/": [
        "- - ok - - - - - -",
        "-: closed, it shows a page of the site's own",
    ],
    "/lisbon/": ["- - - - - - - - -", "-: nobody here has country_resident=PT"],
}
#: Of the tests themselves.
LEAKY = "leaky.Elsewhere"


@pytest.fixture
def report() -> Report:
    return Report()


def doors_at(report: Report, *examples: str) -> list[Door]:
    return list(doors_of(list(gate_map.addresses()), report, examples=examples))


@pytest.fixture
def scene(
    identity_sandbox: RunningSandbox,
    identity_application: conf.Application,
    settings: Any,
    tmp_path: Path,
    report: Report,
) -> Scene:
    settings.MEDIA_ROOT = str(tmp_path)
    doors = doors_at(report, *EXAMPLES)
    report.unseen["/"] = findings.OPEN
    return Scene(identity_sandbox, doors, ["/identity/account/"], report)


def test_doors_and_what_is_none(report):
    """Each address with a path, and the reason for each that cannot be tried.

    An example leads to an address of which nothing can be seen.
    """
    doors = doors_at(report, *EXAMPLES, "/code/ABC-1234")
    assert [door.path for door in doors] == [
        "/members/",
        "/bar/",
        "/vault/",
        "/leave/",
        "/loans/1/",
        "/loans/2/",
        "/code/ABC-1234",
        "/teaser/",
        "/api/wines/",
        "/api/wines.json",
        "/lisbon/",
    ]
    untried = {
        place: why
        for place, why in report.untried.items()
        if not why.startswith("nobody here has")
    }

    assert untried == {
        "/nowhere/": "no gated address has it",
        "/^old/(?P<key>\\d+)$": "no --address",
        "/either/": "somebody else's permissions open it, too: (age_over_18 | IsAdminUser)",
        "/chosen/": "the site's own code decides: Chosen.get_permissions()",
        "/bar/twice/": "/bar/<slug:word>/ answers",
    }


def test_a_walk_finds_nothing_at_a_site_that_keeps_its_promises(scene, report):
    """From the front page to the erasure. A cell is ok only if its address was opened.

    What nobody can tell has another mark, and the row says why.
    """
    person = Visitor(scene, first_name="Xalita", last_name="Yzzyx", country="NG")
    person.take(person.walk())
    parting = Visitor(scene, first_name="Atilax", last_name="Zzyzx", country="NG")
    parting.take(parting.part())
    assert report.findings == []
    told = {place: why for place, why in report.untried.items() if place[0] != "/"}
    assert told == {LEAKY: "no table"}

    report.settle()
    lines = list(report.table())
    assert lines[0].split() == " ".join(STEPS).split()
    assert {address: rows_of(lines, address) for address in ROWS} == ROWS


def rows_of(lines: list[str], address: str) -> list[str]:
    """What the table has below the address."""
    below = lines[lines.index(address) + 1 :]
    ends = (place for place, line in enumerate(below) if line.startswith(("/", "ok:")))
    return [" ".join(line.split()) for line in below[: next(ends)]]


def test_an_erasure_that_waits_is_found(scene, report, monkeypatch, request):
    """The receipt has only the class of the error; the log has its place."""

    def erase_user(self: Any, user: Any) -> None:
        raise ValueError("full")

    person = Visitor(scene, first_name="Xalita", last_name="Yzzyx")
    person.sign_in()
    monkeypatch.setattr(IdentityPolicy, "erase_user", erase_user)
    request.addfinalizer(patch.stopall)
    findings.watch_logs(report)
    person.take(person.erase())
    [failed, waits] = report.findings
    assert waits == "an erasure waits: ValueError"
    place = r"\S+test_drill.py, line \d+"
    assert re.fullmatch(
        rf"identity.erasure.failed: ValueError in {place}: full",
        failed,
    )


def test_what_was_found_is_told_where_the_evidence_cannot_be_written(
    monkeypatch,
    tmp_path,
):
    """A drill takes a while, and its findings would be lost with the file."""
    seen = Report(findings=["`/bar/` is open"])
    monkeypatch.setattr(identity_drill, "drill", lambda **_given: seen)
    monkeypatch.setattr(signal, "signal", lambda *_given: None)
    ran = run("identity_drill", "--json", tmp_path / "nowhere" / "drill.json")
    assert "found: `/bar/` is open" in ran.out
    assert ran.error.endswith("drill.json cannot be written: No such file or directory")


@pytest.mark.parametrize("said", ["private", "no-store", "max-age=60", ""])
def test_what_a_cache_may_store(said):
    response = HttpResponse(headers={"Cache-Control": said} if said else {})
    found = findings.cached("/bar/", response)
    if said in ("private", "no-store"):
        assert found == ""
    else:
        assert found == f"`/bar/` may stay in a cache: its Cache-Control is “{said}”"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (HttpResponse(), "open"),
        (HttpResponse(status=405), "open"),
        (HttpResponse(status=302, headers={"Location": "/thanks/"}), "open"),
        (
            HttpResponse(status=302, headers={"Location": "/identity/login/?next=%2F"}),
            "closed",
        ),
        (HttpResponse(status=403), "closed"),
        (HttpResponse(status=401), "closed"),
        (HttpResponse(status=404), "404"),
        (HttpResponse(status=301, headers={"Location": "/bar/"}), "301"),
    ],
    ids=["200", "405", "to a page", "to the login", "403", "401", "404", "to itself"],
)
def test_what_a_response_says(response, outcome):
    assert outcome_of(response, "/bar") == outcome


def test_a_login_at_the_root_is_not_every_page_below_it(settings):
    settings.LOGIN_URL = "/"
    to_a_page, to_the_login = (
        HttpResponse(status=302, headers={"Location": address})
        for address in ("/thanks/", "/?next=%2Fbar")
    )
    assert outcome_of(to_a_page, "/bar") == "open"
    assert outcome_of(to_the_login, "/bar") == "closed"
