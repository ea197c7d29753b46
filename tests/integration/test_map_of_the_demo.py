"""The map of gates says of the demo's pages what a crawler meets there."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from example_project.circle.management.commands.demo import ADA, Demo, started
from example_project.demo.browser import Browser
from example_project.demo.processes import HOST, ROOT, free_port

LAYLA = "00000000-0000-4000-8000-000000000007"
GATED = {
    "/adults/", "/residents/", "/loans/", "/leave/", "/documents/", "/documents/passport/",
    "/api/circles/",
}  # fmt: skip
CLOSED = {
    "nobody": GATED,
    "Ada": {"/documents/", "/documents/passport/"},
    "Layla": {"/residents/"},  # of Egypt; she has allowed the documents
}


def sign_in(site: str, subject: str) -> Browser:
    browser = Browser()
    browser.open(f"{site}/identity/login/")
    browser.submit(holding="csrfmiddlewaretoken")
    browser.submit(holding="person", person=subject)
    browser.submit(holding="allow", allow="Approve")
    return browser


def allow_documents(browser: Browser, site: str) -> None:
    browser.open(f"{site}/documents/")
    browser.submit(holding="scope")
    browser.submit(holding="allow", allow="Approve")


def is_closed(answer: httpx.Response) -> bool:
    """Whether a gate answered: by its page, or by a problem that names what is missing."""
    if answer.status_code == 302:
        return "missing=" in answer.headers["Location"]
    return answer.status_code in (401, 403) and answer.request.url.path in GATED


def address_of(url: str) -> str:
    """An address under the pattern ``url``, with something in each of its places."""
    filled = re.sub(r"\(\?P<app_label>.*?\)", "auth", url).replace("<slug:alias>", "default")
    return re.sub(r"\(\?P<.*?\)|<.*?>", "1", filled).replace("^", "").replace("$", "")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Demo]]:
    folder, port = tmp_path_factory.mktemp("demo"), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
        with started(port, free_port(), folder / "demo.sqlite3", folder) as running:
            yield f"http://{HOST}:{port}", running


@pytest.mark.parametrize("who", CLOSED)
def test_no_difference(demo: tuple[str, Demo], who: str) -> None:
    """Every URL, opened by nobody, by Ada and by Layla: closed where the map says so, and there."""
    site, running = demo
    browser, key = Browser(), "nobody"
    if who != "nobody":
        browser = sign_in(site, ADA if who == "Ada" else LAYLA)
        if who == "Layla":
            allow_documents(browser, site)
        key = browser.cookie("sessionid")
    said = subprocess.run(
        [sys.executable, "-m", "tests.example_project.passing", key],
        cwd=ROOT, env={**os.environ, **running.env}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    is_open = json.loads(said.stdout)
    met = {url: is_closed(browser.ask(site + address_of(url))) for url in is_open}
    browser.close()
    assert len(is_open) > 30
    assert {url for url, closed in met.items() if closed} == CLOSED[who]
    assert {url for url, opened in is_open.items() if not opened} == CLOSED[who]
