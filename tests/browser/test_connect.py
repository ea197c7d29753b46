"""A code pasted as a person would, in a real Chromium.

``IDENTITY_SCREENSHOTS`` names a folder for pictures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from example_project.circle.management.commands.demo import pages_of, started
from example_project.demo.members import MEMBERS
from example_project.demo.processes import HOST, free_port
from tests.browser.looking import overflow, shoot

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}


def make_code(page: Page, pages: str, person: dict[str, str]) -> str:
    """Sign in at the service, make a code and copy it."""
    page.goto(f"{pages}/account/connect-codes/new")
    if "/sign-in" in page.url:
        page.get_by_text("Sign in with a password instead").click()
        page.fill("[name=email]", person["email"])
        page.fill("[name=password]", person["password"])
        page.press("[name=password]", "Enter")
        page.goto(f"{pages}/account/connect-codes/new")
    page.fill("[name=password]", person["password"])
    page.press("[name=password]", "Enter")
    return page.locator("#connect-code").inner_text()


def paste(page: Page, text: str) -> None:
    """Put ``text`` on the clipboard and into the field, with the keyboard."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.locator("[name=connect_code]").click()
    page.keyboard.press("Control+V")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_person_pastes_a_code(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: bool
) -> None:
    """From the account at the service to an open page, by one paste and one press."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
    port, sandbox_port = free_port(), free_port()
    site, pages, member = f"http://{HOST}:{port}", pages_of(sandbox_port), MEMBERS[0]
    complaints: list[str] = []
    with started(port, sandbox_port, tmp_path / "demo.sqlite3", tmp_path) as demo:
        at_service = chromium.new_page()
        code = make_code(at_service, pages, demo.people[1])
        context = phone(chromium, scripts=scripts, site=site)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{site}/identity/connect/?next=/loans/")
        page.fill("[name=username]", member.name)
        page.fill("[name=password]", member.password)
        page.press("[name=password]", "Enter")
        page.goto(f"{site}/identity/connect/?next=/loans/")
        shoot(page, "connect-1-field")
        assert not scripts or overflow(page) == []
        typed = f"Your code: {code.lower()} (10 minutes)"
        if scripts:
            paste(page, "CNX-ABCD")
            page.keyboard.press("Enter")
            page.get_by_role("alert").wait_for()
            assert page.locator("[name=connect_code]").input_value() == "CNX-ABCD"
            page.locator("[name=connect_code]").fill("")
            shoot(page, "connect-2-no-code")
            paste(page, typed)
        else:
            page.fill("[name=connect_code]", typed)
        shoot(page, "connect-3-pasted")
        page.get_by_role("button", name="Use this code").dblclick(no_wait_after=True)
        page.get_by_role("link", name="Yes, this is me").click()
        page.wait_for_url(f"{site}/loans/")
        assert page.get_by_role("heading", name="Loans").is_visible()
        if not scripts:
            page.go_back()
            assert code not in page.content()
        page.goto(f"{site}/identity/account/")
        assert page.get_by_text("Verification at level 2, by").is_visible()
        shoot(page, "connect-4-account")
    assert [text for text in complaints if "Content Security Policy" in text] == []


def phone(chromium: Browser, *, scripts: bool, site: str) -> BrowserContext:
    context = chromium.new_context(java_script_enabled=scripts, **PHONE)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site)
    return context


def test_a_person_who_lacks_a_verification(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what is missing and leads there; a used code is told as such."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
    port, sandbox_port = free_port(), free_port()
    site, pages, member = f"http://{HOST}:{port}", pages_of(sandbox_port), MEMBERS[0]
    with started(port, sandbox_port, tmp_path / "demo.sqlite3", tmp_path) as demo:
        control = f"http://{HOST}:{sandbox_port}/sandbox"
        require_level_2(chromium, control)
        code = make_code(chromium.new_page(), pages, demo.people[0])
        page = chromium.new_page(viewport={"width": 1000, "height": 760})
        page.goto(f"{site}/identity/connect/")
        page.fill("[name=username]", member.name)
        page.fill("[name=password]", member.password)
        page.press("[name=password]", "Enter")
        page.fill("[name=connect_code]", code)
        page.get_by_role("button", name="Use this code").click()
        link = page.get_by_role("link", name="Get verified")
        assert link.get_attribute("href", timeout=5000) is not None
        shoot(page, "connect-5-policy")
        page.fill("[name=connect_code]", "CNX-0000-0000")
        page.get_by_role("button", name="Use this code").click()
        page.get_by_text("Make a new code").wait_for()
        shoot(page, "connect-6-invalid")
        for number in range(1, 5):
            page.fill("[name=connect_code]", f"CNX-0000-000{number}")
            page.get_by_role("button", name="Use this code").click()
        page.get_by_text("The limit is 5 codes in 10 minutes.").wait_for()
        shoot(page, "connect-7-wait")


def require_level_2(chromium: Browser, control: str) -> None:
    """As the application's owner would, at the developer's pages."""
    api = chromium.new_context().request
    listed = api.get(f"{control}/applications").json()
    app_ids = {application["name"]: application["app_id"] for application in listed}
    path = f"{control}/applications/{app_ids['Ajo Circle']}/connect-policy"
    assert api.post(path, data={"kyc_level": "level_2"}).ok
