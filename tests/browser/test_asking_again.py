"""A confirmation and one scope more, in a real Chromium: allowed, refused, by somebody else."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from example_project.demo.processes import ROOT
from tests.browser.demo import Demo
from tests.browser.looking import overflow, shoot, violations

LOOKS = {"1280": (1280, "100%"), "390": (390, "100%"), "320-large": (320, "200%")}
LARGE = "size => { document.documentElement.style.fontSize = size; }"
# Eleven minutes pass for every session of the site.
ELEVEN_MINUTES = """
import django; django.setup()
from django.contrib.sessions.models import Session
from django.contrib.sessions.backends.db import SessionStore
from django_identity.lifecycle.step_up import KEY
for row in Session.objects.all():
    session = SessionStore(row.session_key)
    if KEY in session:
        mark, at = session[KEY]
        session[KEY] = [mark, at - 660]
        session.save()
"""


@pytest.fixture
def person(demo: Demo) -> Page:
    page = demo.window()
    demo.come_as(page, demo.people[1])
    return page


def pass_eleven_minutes(demo: Demo) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "example_project.settings"}
    env = {**os.environ, **settings, "DATABASE_URL": f"sqlite:///{demo.database}"}
    subprocess.run([sys.executable, "-c", ELEVEN_MINUTES], cwd=ROOT, env=env, check=True)


def is_open(demo: Demo, page: Page, path: str) -> bool:
    page.goto(demo.site + path)
    return page.url == demo.site + path


def confirm(page: Page, answer: str = "allow") -> None:
    page.get_by_role("button", name="Confirm with your identity service").click()
    page.locator(f"button[name={answer}]").click()


def decide(page: Page, answer: str = "allow", *, without_documents: bool = False) -> None:
    page.get_by_role("button", name="Decide at your identity service").click()
    if without_documents:
        page.get_by_label("Do not share this").check()
    page.locator(f"button[name={answer}]").click()


def looks_well(page: Page, name: str) -> None:
    for look, (width, size) in LOOKS.items():
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(LARGE, size)
        shoot(page, f"{name}-{look}")
        assert overflow(page) == [], look
        assert violations(page) == [], look
    page.evaluate(LARGE, "100%")
    page.set_viewport_size({"width": 1280, "height": 800})


def test_confirmed_in_two_tabs(demo: Demo, person: Page) -> None:
    """Each tab leads back to its page, and the one that comes second says nothing wrong."""
    assert is_open(demo, person, "/leave/")
    pass_eleven_minutes(demo)
    second = person.context.new_page()
    for tab in (person, second):
        assert not is_open(demo, tab, "/leave/")
        tab.get_by_text("Confirm that it is you").wait_for()
    looks_well(person, "confirm")
    for tab in (person, second):
        confirm(tab)
        tab.get_by_role("heading", name="Leave a circle").wait_for()


def deny(_demo: Demo, page: Page) -> None:
    confirm(page, "deny")
    page.get_by_role("heading", name="You did not share anything").wait_for()


def be_somebody_else(_demo: Demo, page: Page) -> None:
    page.get_by_role("button", name="Confirm with your identity service").click()
    page.get_by_role("button", name="Not you? Switch account").click()
    page.get_by_role("button", name="Continue as Ada").click()
    page.locator("button[name=allow]").click()
    page.get_by_text("subject_changed").wait_for()


def sign_out_meanwhile(demo: Demo, page: Page) -> None:
    page.get_by_role("button", name="Confirm with your identity service").click()
    page.locator("button[name=allow]").wait_for()
    other = page.context.new_page()
    other.goto(f"{demo.site}/")
    other.get_by_role("button", name="Sign out").click()
    other.get_by_role("link", name="Sign in with a password").wait_for()
    page.locator("button[name=allow]").click()
    page.get_by_text("session_ended").wait_for()


@pytest.mark.parametrize("instead", [deny, be_somebody_else, sign_out_meanwhile])
def test_not_confirmed(demo: Demo, person: Page, instead: Callable[[Demo, Page], None]) -> None:
    """Denied, somebody else came back, or the session ended: the page stays closed."""
    pass_eleven_minutes(demo)
    assert not is_open(demo, person, "/leave/")
    instead(demo, person)
    shoot(person, f"confirm-{instead.__name__}")
    assert not is_open(demo, person, "/leave/")


def test_one_scope_more(demo: Demo, person: Page) -> None:
    """Kept back, denied, allowed, and taken back: all else stays open until the consent ends."""
    assert not is_open(demo, person, "/documents/")
    person.get_by_text("You have not allowed this yet").wait_for()
    looks_well(person, "one-more")
    decide(person, without_documents=True)
    person.get_by_text("You have not allowed this yet").wait_for()
    decide(person, "deny")
    person.get_by_role("heading", name="You did not share anything").wait_for()
    assert is_open(demo, person, "/adults/")
    assert not is_open(demo, person, "/documents/")
    decide(person)
    person.get_by_role("heading", name="Your documents").wait_for()
    assert person.get_by_alt_text("Your passport").is_visible()
    shoot(person, "one-more-allowed")
    take_back_documents(demo, person)
    assert is_open(demo, person, "/adults/")
    assert not is_open(demo, person, "/documents/")
    decide(person)
    person.get_by_role("heading", name="Your documents").wait_for()
    take_back_all(demo, person)
    assert not is_open(demo, person, "/documents/")


def take_back_documents(demo: Demo, page: Page) -> None:
    demo.account(page).get_by_role("button", name="Check again with").click()
    page.get_by_label("Do not share this").check()
    page.locator("button[name=allow]").click()
    page.wait_for_url("**/identity/account/")


def take_back_all(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.pages}/account/")
    page.locator("form[action$='/revoke'][action*='/consents/'] button").click()
    page.wait_for_load_state()
    # The event arrives from a thread of the sandbox.
    for _ in range(50):
        if not is_open(demo, page, "/adults/"):
            break
        page.wait_for_timeout(100)
