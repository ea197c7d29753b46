"""The map of gates says of the demo's pages what a crawler meets there."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, closing
from html import unescape
from urllib.parse import urljoin

import httpx

from example_project.circle.management.commands.demo import ADA
from example_project.demo.browser import Browser
from example_project.demo.processes import ROOT
from tests.sites.browser import LEADS_TO

LAYLA = "00000000-0000-4000-8000-000000000007"
GATED = {
    "/adults/", "/residents/", "/loans/", "/leave/", "/documents/", "/documents/passport/",
    "/api/circles/",
}  # fmt: skip
CLOSED = {
    "": GATED,
    ADA: {"/documents/", "/documents/passport/"},
    LAYLA: {"/residents/"},  # of Egypt; she has allowed the documents
}


def sign_in(browser: Browser, site: str, subject: str) -> None:
    browser.open(f"{site}/identity/login/")
    browser.submit(holding="csrfmiddlewaretoken")
    browser.submit(holding="person", person=subject)
    approve(browser)
    if subject == LAYLA:
        browser.open(f"{site}/documents/")
        browser.submit(holding="scope")
        approve(browser)


def approve(browser: Browser) -> None:
    """Press the button, and follow the page that leads on with a strict cookie."""
    browser.submit(holding="allow", allow="Approve")
    [led_to] = LEADS_TO.findall(browser.page.text)
    browser.open(urljoin(browser.address, unescape(led_to)))


def is_closed(answer: httpx.Response) -> bool:
    """Whether a gate answered: by its page, or by a problem that names what is missing."""
    if answer.status_code == 302:
        return "missing=" in answer.headers["Location"]
    return answer.status_code in (401, 403) and answer.request.url.path in GATED


def address_of(url: str) -> str:
    """An address under the pattern ``url``, with something in each of its places."""
    filled = re.sub(r"\(\?P<app_label>.*?\)", "auth", url)
    return re.sub(r"\(\?P<.*?\)|<.*?>", "1", filled).replace("^", "").replace("$", "")


def test_every_url_is_closed_where_the_map_says_so(demo):
    """Every URL, opened by nobody, by Ada and by Layla: closed where the map says so, and there."""
    with ExitStack() as stack:
        browsers = [stack.enter_context(closing(Browser())) for _ in CLOSED]
        for browser, subject in zip(browsers, CLOSED, strict=True):
            if subject:
                sign_in(browser, demo.site, subject)
        keys = ["nobody", *(browser.cookie("sessionid") for browser in browsers[1:])]
        said = subprocess.run(
            [sys.executable, "-m", "tests.example_project.print_gate_map", *keys],
            cwd=ROOT, env={**os.environ, **demo.env}, capture_output=True, check=True, text=True,
        ).stdout  # fmt: skip
        for browser, line, closed in zip(
            browsers, said.splitlines(), CLOSED.values(), strict=True
        ):
            is_open = json.loads(line)
            met = {
                url
                for url in is_open
                if is_closed(browser.ask(demo.site + address_of(url)))
            }
            assert len(is_open) > 30
            assert met == closed
            assert {url for url, opened in is_open.items() if not opened} == closed
