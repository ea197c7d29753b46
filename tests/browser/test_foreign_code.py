"""A stranger's code in a real Chromium: what the page says, one press back, nobody else let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from example_project.circle.management.commands.demo import pages_of, started
from example_project.demo.members import MEMBERS, Member
from example_project.demo.processes import HOST, free_port
from tests.browser.looking import overflow, shoot, violations
from tests.browser.test_connect import make_code

pytestmark = pytest.mark.browser
WIDE = {"viewport": {"width": 1280, "height": 800}}
NARROW = {"viewport": {"width": 320, "height": 640}}


def sign_in_locally(page: Page, site: str, member: Member) -> None:
    page.goto(f"{site}/identity/connect/")
    page.fill("[name=username]", member.name)
    page.fill("[name=password]", member.password)
    page.press("[name=password]", "Enter")


def paste_code(page: Page, site: str, code: str) -> None:
    page.goto(f"{site}/identity/connect/?next=/loans/")
    page.fill("[name=connect_code]", code)
    page.get_by_role("button", name="Use this code").click()
    page.get_by_role("heading", name="Is this you?").wait_for()


def looks_well(page: Page, name: str) -> None:
    shoot(page, name)
    assert overflow(page) == []
    assert violations(page) == []


@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["1280", "320"])
def test_a_strangers_code(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    window: dict[str, dict[str, int]],
) -> None:  # fmt: skip
    """Pasted, named on the page after it, of no use to the stranger, and undone by one press."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
    port, sandbox_port = free_port(), free_port()
    site, pages = f"http://{HOST}:{port}", pages_of(sandbox_port)
    name = f"foreign-code-{window['viewport']['width']}"
    with started(port, sandbox_port, tmp_path / "demo.sqlite3", tmp_path) as demo:
        stranger = chromium.new_context(**window).new_page()
        code = make_code(stranger, pages, demo.people[1])
        victim = chromium.new_context(**window).new_page()
        sign_in_locally(victim, site, MEMBERS[0])
        paste_code(victim, site, code)
        assert "***@" in victim.locator("bdi").inner_text()
        looks_well(victim, f"{name}-1-is-this-you")
        victim.goto(f"{site}/identity/account/")
        looks_well(victim, f"{name}-2-account")

        stranger.goto(f"{site}/identity/login/")
        stranger.get_by_role("button", name="Continue with identity").click()
        stranger.locator("button[name=allow]").click()
        stranger.get_by_role("heading", name="You were not signed in").wait_for()
        looks_well(stranger, f"{name}-3-refused")
        stranger.goto(f"{site}/identity/account/")
        assert "/identity/login/" in stranger.url

        victim.get_by_role("button", name="This is not me: undo").click()
        victim.get_by_role("heading", name="Undone").wait_for()
        looks_well(victim, f"{name}-4-undone")
        victim.goto(f"{site}/identity/account/")
        assert victim.get_by_text(
            "Your account is not connected to the identity service."
        ).is_visible()
