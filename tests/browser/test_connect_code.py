"""The service's page of a Connect code, as its script makes it live."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.test_connect import make_code
from tests.sandbox.driver import Person, Sandbox

pytestmark = pytest.mark.browser


def seconds(shown: str) -> int:
    minutes, rest = shown.split(":")
    return int(minutes) * 60 + int(rest)


def test_the_countdown_is_live(chromium: Browser) -> None:
    """It counts each second, the code can be copied, and at the end the page says so itself."""
    with Sandbox() as sandbox:
        person = Person(sandbox, verified=True)
        context = chromium.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=sandbox.origin)
        page = context.new_page()
        page.clock.install()
        code = make_code(page, sandbox.origin, person.account)
        clock = page.get_by_role("timer")
        began = seconds(clock.inner_text())
        assert 590 <= began <= 600
        page.clock.run_for(30_000)
        assert began - 35 <= seconds(clock.inner_text()) <= began - 30
        page.get_by_role("button", name="Copy the code").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == code
        sandbox.control("POST", "clock", advance=601)
        page.clock.run_for(600_000)
        expect(page.get_by_role("heading", name="This code has expired")).to_be_visible()
        assert code not in page.content()
        context.close()
