"""The demo in a real Chromium: a sign-in, Connect codes, and what a page asks for again.

``IDENTITY_SCREENSHOTS`` names a folder for pictures.
"""

import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Page

from django_identity.lifecycle.standing.step_up import KEY
from example_project.demo.members import MEMBERS
from example_project.demo.walk import BVN
from tests.browser.demo import Demo, account, give_password, make_code
from tests.browser.page_looks import Look, looks_well, overflow, shoot

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True,
}  # fmt: skip
CLIPBOARD = ["clipboard-read", "clipboard-write"]
MEMBER = MEMBERS[0]
LOOKS = (Look(320, text="200%"), Look(390), Look(1280))


def test_the_walk_in_a_browser(demo):
    """Press the button, sign in, verify, consent: the page for adults opens.

    With SameSite=Strict and the service on another host: the callback still knows who started it.
    """
    page = demo.window()
    page.goto("/adults/")
    shoot(page, "1-login")
    page.get_by_role("button", name="Continue with Sandbox Identity").click()
    give_password(page, demo.people[0])
    page.fill("[name=bvn]", BVN)
    shoot(page, "2-sandbox-verify")
    page.press("[name=bvn]", "Enter")
    page.wait_for_selector("button[name=allow]")
    shoot(page, "3-sandbox-consent")
    page.locator("button[name=allow]").click()
    page.wait_for_url("/adults/")
    assert page.get_by_role("heading", name="Circles for adults").is_visible()
    held = page.context.cookies(demo.site)
    assert {"Strict"} == {
        each["sameSite"] for each in held if "session" in each["name"]
    }
    # To the service and back, with fresh proofs.
    account(page).get_by_role(
        "button", name="Check again with Sandbox Identity"
    ).click()
    page.locator("button[name=allow]").click()
    page.wait_for_url("/identity/account/")
    assert page.get_by_text("Your details were checked again.").first.is_visible()
    shoot(page, "4-account")


def paste(page: Page, text: str) -> None:
    """Put ``text`` on the clipboard and into the field, with the keyboard."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.locator("[name=connect_code]").click()
    page.keyboard.press("Control+V")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_person_pastes_a_code(demo, scripts):
    """From the account at the service to an open page, by one paste and one press."""
    code = make_code(demo.window(), demo.pages, demo.people[1])
    page = demo.session_of(MEMBER, java_script_enabled=scripts, **PHONE)
    page.context.grant_permissions(CLIPBOARD, origin=demo.site)
    page.goto("/identity/connect/?next=/loans/")
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
    page.wait_for_url("/loans/")
    assert page.get_by_role("heading", name="Loans").is_visible()
    if not scripts:
        page.go_back()
        assert code not in page.content()
    assert account(page).get_by_text("Verification at level 2, by").is_visible()
    shoot(page, "connect-3-account")


@pytest.fixture
def person(demo: Demo) -> Page:
    return demo.come_as(demo.people[1])


def pass_eleven_minutes(demo: Demo) -> None:
    """For every session of the site."""
    with closing(sqlite3.connect(demo.database, timeout=60)) as site, site:
        rows = site.execute(
            "SELECT session_key, session_data FROM django_session"
        ).fetchall()
        for key, sealed in rows:
            session = SessionStore().decode(sealed)
            if KEY in session:
                session[KEY][1] -= 660
                moved = (SessionStore().encode(session), key)
                site.execute(
                    "UPDATE django_session SET session_data = ? WHERE session_key = ?",
                    moved,
                )


def is_open(page: Page, path: str) -> bool:
    page.goto(path)
    return urlsplit(page.url).path == path


def decide(
    page: Page, answer: str = "allow", *, without_documents: bool = False
) -> None:
    page.get_by_role("button", name="Decide at Sandbox Identity").click()
    if without_documents:
        page.get_by_label("Do not share this").check()
    page.locator(f"button[name={answer}]").click()


def test_confirmed_in_two_tabs(demo, person):
    """Each tab leads back to its page, and the one that comes second says nothing wrong."""
    assert is_open(person, "/leave/")
    pass_eleven_minutes(demo)
    second = person.context.new_page()
    for tab in (person, second):
        assert not is_open(tab, "/leave/")
        tab.get_by_text("Confirm that it is you").wait_for()
    looks_well(person, "confirm", LOOKS)
    for tab in (person, second):
        tab.get_by_role("button", name="Confirm with Sandbox Identity").click()
        tab.locator("button[name=allow]").click()
        tab.get_by_role("heading", name="Leave a circle").wait_for()


def test_a_scope_gate_opens_when_the_scope_is_allowed(demo, person):
    """Kept back, denied, allowed, and taken back: all else stays open."""
    assert not is_open(person, "/documents/")
    person.get_by_text("You have not allowed this yet").wait_for()
    looks_well(person, "one-more", LOOKS)
    decide(person, without_documents=True)
    person.get_by_text("You have not allowed this yet").wait_for()
    decide(person, "deny")
    person.get_by_role("heading", name="You did not share anything").wait_for()
    assert is_open(person, "/adults/")
    assert not is_open(person, "/documents/")
    decide(person)
    person.get_by_role("heading", name="Your documents").wait_for()
    assert person.get_by_alt_text("Your passport").is_visible()
    shoot(person, "one-more-allowed")
    account(person).get_by_role("button", name="Check again with").click()
    person.get_by_label("Do not share this").check()
    person.locator("button[name=allow]").click()
    person.wait_for_url("**/identity/account/")
    assert is_open(person, "/adults/")
    assert not is_open(person, "/documents/")
