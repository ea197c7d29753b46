"""The main job in a real Chromium, with screenshots in ``ci-output/screenshots``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from example_project.circle.management.commands.demo import started
from example_project.demo.processes import HOST, free_port
from example_project.demo.walk import BVN

pytestmark = pytest.mark.browser

SHOTS = Path(os.environ.get("IDENTITY_SCREENSHOTS", "ci-output/screenshots"))
CHROMIUM = {
    "executable_path": "/usr/bin/chromium",
    "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
}


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**CHROMIUM)
        yield browser.new_page(viewport={"width": 1000, "height": 760})
        browser.close()


def shoot(page: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def test_the_walk_in_a_browser(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press the button, sign in, verify, consent: the page for adults opens."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    port, sandbox_port = free_port(), free_port()
    site = f"http://{HOST}:{port}"
    with started(port, sandbox_port, tmp_path / "demo.sqlite3") as people:
        page.goto(f"{site}/adults/")
        shoot(page, "1-login")
        page.get_by_role("button", name="Sign in with identity").click()
        page.fill("[name=email]", people[0]["email"])
        page.fill("[name=password]", people[0]["password"])
        shoot(page, "2-sandbox-sign-in")
        page.press("[name=password]", "Enter")
        page.fill("[name=bvn]", BVN)
        shoot(page, "3-sandbox-verify")
        page.press("[name=bvn]", "Enter")
        page.wait_for_selector("button[name=allow]")
        shoot(page, "4-sandbox-consent")
        page.locator("button[name=allow]").click()
        page.wait_for_url(f"{site}/adults/")
        assert page.get_by_role("heading", name="Circles for adults").is_visible()
        shoot(page, "5-adults")
        page.goto(f"{site}/loans/")
        assert page.get_by_role("heading", name="Loans").is_visible()
        page.goto(f"{site}/identity/account/")
        assert page.get_by_text("proven until").first.is_visible()
        shoot(page, "6-account")
        page.goto(f"{site}/")
        shoot(page, "7-home")
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{site}/identity/account/")
        assert "/identity/login/" in page.url
    assert [text for text in complaints if "Content Security Policy" in text] == []
