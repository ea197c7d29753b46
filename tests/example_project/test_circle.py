"""Ajo Circle, as its members meet it: a site that runs, and people in every state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.example_project.site import Site, running_site
from tests.hostile import hostile_service
from tests.sandbox.driver import TLS

JSON = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with hostile_service() as service:
        folder = tmp_path_factory.mktemp("circle")
        with running_site(folder, service.settings()) as running:
            yield running


@contextmanager
def window(site: Site, person: str = "") -> Iterator[httpx.Client]:
    cookies = {"sessionid": site.sessions[person]} if person else {}
    address = site.address
    with httpx.Client(base_url=address, cookies=cookies, trust_env=False, verify=TLS) as client:
        yield client


def post(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send the page's form, with the token that the page holds."""
    page = client.get(path).text
    token = re.search(r'name="csrfmiddlewaretoken" value="(.*?)"', page)
    return client.post(path, data={"csrfmiddlewaretoken": token[1] if token else "", **fields})


@pytest.mark.parametrize("person", ["", "run_out", "revoked", "withdrawn", "unlinked"])
@pytest.mark.parametrize("path", ["/adults/", "/residents/", "/api/circles/"])
def test_circles_are_closed(site: Site, person: str, path: str) -> None:
    """Nobody without a proof that holds gets in, by page or by API."""
    with window(site, person) as client:
        assert client.get(path, headers=JSON).status_code in (401, 403)
        assert client.get(path).status_code in (302, 403)


def test_nobody_joins_without_a_proof(site: Site) -> None:
    """Nor by sending the form that only members see."""
    with window(site, "run_out") as client:
        token = {"csrfmiddlewaretoken": client.get("/").cookies.get("csrftoken", "")}
        answer = client.post("/adults/", data={**token, "circle": "market-day"})
        assert answer.status_code in (302, 403)
        assert "Your circles" not in client.get("/").text


def test_a_circle_of_the_other_page_is_not_offered(site: Site) -> None:
    """A naira circle cannot be joined through the adults' page."""
    with window(site, "abroad") as client:
        post(client, "/adults/", circle="lagos-traders")
        page = client.get("/").text
        assert "Your circles" not in page
        assert "There is no such circle." in page


def test_where_somebody_lives_decides(site: Site) -> None:
    """Naira circles are for residents of Nigeria, and say what another country's proof says."""
    with window(site, "abroad") as client:
        assert client.get("/adults/").status_code == 200
        closed = client.get("/residents/")
    assert closed.status_code == 403
    assert "It says: Ghana." in closed.text


def test_borrowing_needs_level_2(site: Site) -> None:
    """Level 1 is sent to where it is explained; level 2 sees the terms."""
    with window(site, "abroad") as client:
        sent = client.get("/loans/")
        assert "missing=level_2" in sent.headers["Location"]
        assert "You are verified at a lower level" in client.get(sent.headers["Location"]).text
    with window(site, "proven") as client:
        assert "Guarantors" in client.get("/loans/").text


def test_a_member_joins_once(site: Site) -> None:
    """The circle is on the front page, in the app, and cannot be joined twice."""
    with window(site, "proven") as client:
        for _ in range(2):
            joined = post(client, "/adults/", circle="market-day")
            assert joined.headers["Location"] == "/adults/"
        home = client.get("/").text
        assert home.count("<h3>Market Day</h3>") == 1
        told = client.get("/api/circles/", headers=JSON).json()
        assert [entry["circle"] for entry in told if entry["joined"]] == ["market-day"]


def test_the_package_pages_wear_the_circles_frame(site: Site) -> None:
    """One template of the site's own puts its header around every page of the package."""
    with window(site, "proven") as client:
        for path in ("/identity/account/", "/identity/disconnect/", "/identity/callback/"):
            assert "circle-brand" in client.get(path).text


def test_every_answer_carries_the_strict_policy(site: Site) -> None:
    """Pages, refusals and errors alike."""
    with window(site) as client:
        for path in ("/", "/adults/", "/residents/", "/identity/callback/", "/nowhere/"):
            assert client.get(path).headers["Content-Security-Policy"] == "default-src 'self'"
