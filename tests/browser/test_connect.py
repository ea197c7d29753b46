"""A code in a real Chromium: made at the service, and pasted as a person would.

``IDENTITY_SCREENSHOTS`` names a folder for pictures.
"""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from example_project.demo.members import MEMBERS
from tests.browser.demo import Demo, make_code
from tests.browser.looking import overflow, shoot
from tests.sandbox.driver import Person, started

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True,
}  # fmt: skip
CLIPBOARD = ["clipboard-read", "clipboard-write"]
MEMBER = MEMBERS[0]


def paste(page: Page, text: str) -> None:
    """Put ``text`` on the clipboard and into the field, with the keyboard."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.locator("[name=connect_code]").click()
    page.keyboard.press("Control+V")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_person_pastes_a_code(demo: Demo, scripts: bool) -> None:
    """From the account at the service to an open page, by one paste and one press."""
    complaints: list[str] = []
    code = demo.code_of(demo.window(), demo.people[1])
    page = demo.window(java_script_enabled=scripts, **PHONE)
    page.context.grant_permissions(CLIPBOARD, origin=demo.site)
    page.on("console", lambda message: complaints.append(message.text))
    demo.sign_in_locally(page, MEMBER)
    page.goto(f"{demo.site}/identity/connect/?next=/loans/")
    shoot(page, "connect-1-field")
    assert not scripts or overflow(page) == []
    typed = f"Your code: {code.lower()} (10 minutes)"
    if scripts:
        paste(page, "CNX-ABCD")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        paste(page, typed)
    else:
        page.fill("[name=connect_code]", typed)
    shoot(page, "connect-2-pasted")
    button = page.get_by_role("button", name="Use this code")
    # Without scripts the answer to the second press may be that the first is on its way.
    (button.dblclick if scripts else button.click)(no_wait_after=True)
    page.get_by_role("link", name="Yes, this is me").click()
    page.wait_for_url(f"{demo.site}/loans/")
    assert page.get_by_role("heading", name="Loans").is_visible()
    if not scripts:
        page.go_back()
        assert code not in page.content()
    assert demo.account(page).get_by_text("Verification at level 2, by").is_visible()
    shoot(page, "connect-3-account")
    assert [text for text in complaints if "Content Security Policy" in text] == []


def test_a_person_who_lacks_a_verification(demo: Demo) -> None:
    """The page says what is missing and leads there; then how long to wait after five codes."""
    require_level_2(demo)
    code = demo.code_of(demo.window(), demo.people[0])
    page = demo.session_of(MEMBER)
    demo.paste_code(page, code)
    link = page.get_by_role("link", name="Get verified")
    assert link.get_attribute("href") is not None
    shoot(page, "connect-4-policy")
    for number in range(5):
        page.fill("[name=connect_code]", f"CNX-0000-000{number}")
        page.get_by_role("button", name="Use this code").click()
        if not number:
            page.get_by_text("Make a new code").wait_for()
            shoot(page, "connect-5-invalid")
    page.get_by_text("The limit is 5 codes in 10 minutes.").wait_for()
    shoot(page, "connect-6-wait")


def require_level_2(demo: Demo) -> None:
    """As the application's owner would, at the developer's pages."""
    api = demo.chromium.new_context().request
    listed = api.get(f"{demo.control}/applications").json()
    app_ids = {application["name"]: application["app_id"] for application in listed}
    path = f"{demo.control}/applications/{app_ids['Ajo Circle']}/connect-policy"
    assert api.post(path, data={"kyc_level": "level_2"}).ok


def seconds(shown: str) -> int:
    minutes, rest = shown.split(":")
    return int(minutes) * 60 + int(rest)


def test_the_countdown_is_live(chromium: Browser) -> None:
    """It counts each second, the code can be copied, and at the end the page says so itself."""
    with started() as sandbox:
        person = Person(sandbox, verified=True)
        context = chromium.new_context()
        context.grant_permissions(CLIPBOARD, origin=sandbox.origin)
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
