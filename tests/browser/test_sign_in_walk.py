"""The main job in a real Chromium; ``IDENTITY_SCREENSHOTS`` names a folder for pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from example_project.circle.management.commands.demo import started
from example_project.demo.processes import HOST, free_port
from example_project.demo.walk import BVN
from tests.browser.looking import shoot

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1000, "height": 760})
    yield context.new_page()
    context.close()


def sign_in(page: Page, person: dict[str, str]) -> None:
    """From the site's button through the sandbox's pages to the consent, approved."""
    page.get_by_role("button", name="Continue with identity").click()
    page.get_by_text("Sign in with a password instead").click()
    page.fill("[name=email]", person["email"])
    page.fill("[name=password]", person["password"])
    shoot(page, "2-sandbox-sign-in")
    page.press("[name=password]", "Enter")
    page.fill("[name=bvn]", BVN)
    shoot(page, "3-sandbox-verify")
    page.press("[name=bvn]", "Enter")
    page.wait_for_selector("button[name=allow]")
    shoot(page, "4-sandbox-consent")
    page.locator("button[name=allow]").click()


def test_the_walk_in_a_browser(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press the button, sign in, verify, consent: the page for adults opens.

    With SameSite=Strict and the service on another host: the callback still knows who started it.
    """
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
    monkeypatch.setenv("SESSION_COOKIE_SAMESITE", "Strict")
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    port, sandbox_port = free_port(), free_port()
    site = f"http://{HOST}:{port}"
    with started(port, sandbox_port, tmp_path / "demo.sqlite3", tmp_path) as demo:
        page.goto(f"{site}/adults/")
        shoot(page, "1-login")
        sign_in(page, demo.people[0])
        page.wait_for_url(f"{site}/adults/")
        assert page.get_by_role("heading", name="Circles for adults").is_visible()
        shoot(page, "5-adults")
        (session,) = [held for held in page.context.cookies(site) if held["name"] == "sessionid"]
        assert session["sameSite"] == "Strict"
        page.goto(f"{site}/loans/")
        assert page.get_by_role("heading", name="Loans").is_visible()
        renew(page, site)
        shoot(page, "6-account")
        page.goto(f"{site}/")
        shoot(page, "7-home")
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{site}/identity/account/")
        assert "/identity/login/" in page.url
    assert [text for text in complaints if "Content Security Policy" in text] == []


def renew(page: Page, site: str) -> None:
    """From the account page to the service and back to it, with fresh proofs."""
    page.goto(f"{site}/identity/account/")
    page.get_by_role("button", name="Check again with identity").click()
    page.locator("button[name=allow]").click()
    page.wait_for_url(f"{site}/identity/account/")
    assert page.get_by_text("checked today").first.is_visible()
