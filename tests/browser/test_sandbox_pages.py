"""The sandbox's own pages in the browser: a person's account and the developer's portal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.looking import overflow, shoot, unmarked_lists, violations
from tests.sandbox.driver import Application, Person, Pkce, Sandbox
from tests.sandbox.receiver import Receiver, until

UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true })"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def page(sandbox: Sandbox, chromium: Browser) -> Iterator[Page]:
    with chromium.new_context(base_url=sandbox.origin) as context:
        yield context.new_page()


def sign_in(page: Page, address: str, email: str, password: str) -> None:
    page.goto(address)
    page.evaluate(UNFOLD)
    page.fill("[name=email]", email)
    page.fill("[name=password]", password)
    follow(page, page.get_by_role("button", name="Sign in"))


def follow(page: Page, control: Locator) -> None:
    """Click and wait for the next page: a click alone returns while the old one is still there."""
    with page.expect_navigation():
        control.click()


def look_at(page: Page, name: str) -> None:
    """At 320 and 1280 px nothing scrolls sideways and axe finds nothing."""
    page.evaluate(UNFOLD)
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        shoot(page, f"sandbox-{name}-{width}")
        assert (overflow(page), violations(page)) == ([], []), f"{name}, {width} px"
    assert unmarked_lists(page) == [], name


def test_the_developer_follows_a_delivery(sandbox: Sandbox, page: Page) -> None:
    """From the list to one that was refused, with request and answer; "Send again" delivers it."""
    application, person = Application(sandbox), Person(sandbox, verified=True)
    with Receiver() as receiver:
        application.receive_at(receiver.url)
        receiver.answers, receiver.body = [500], b"W" * 1500
        person.consent_to(application)
        until(lambda: application.deliveries()[0]["attempts"])
        application.receive_at("http://127.0.0.1:9/")
        sandbox.control("POST", "clock", advance=2)
        until(lambda: len(application.deliveries()[0]["attempts"]) == 2)
        sign_in(page, "/portal/", "developer@sandbox.example", "sandbox-developer")
        look_at(page, "portal")
        page.goto(f"/portal/applications/{application.registration['app_id']}")
        look_at(page, "application")
        page.goto(f"/portal/clients/{application.client_id}/deliveries")
        look_at(page, "deliveries")
        follow(page, page.get_by_role("link", name="consent.granted"))
        look_at(page, "delivery")
        for shown in (person.user_id, "x-webhook-signature", "No answer", "refused", "WWW"):
            assert shown in page.inner_text("main")
        application.receive_at(receiver.url)
        page.get_by_role("button", name="Send again").click()
        assert "It is on its way" in page.inner_text("main")
        until(lambda: application.deliveries()[0]["state"] == "delivered")
        page.reload()
        assert "Delivered" in page.inner_text("main")


def test_a_person_looks_after_the_account(sandbox: Sandbox, page: Page) -> None:
    """Each page fits: sign-in, account, verification, deletion."""
    person = Person(sandbox, verified=True)
    person.consent_to(Application(sandbox))
    person.cause("claims/age_over_18/revoke")
    page.goto("/account/")
    look_at(page, "sign-in")
    follow(page, page.get_by_role("link", name="Make somebody else"))
    look_at(page, "make-person")
    page.goto("/nowhere")
    look_at(page, "not-found")
    sign_in(page, "/account/", person.account["email"], person.account["password"])
    look_at(page, "account")
    for name in ("verify", "delete"):
        page.goto(f"/account/{name}")
        look_at(page, name)


WINDOWS = {"phone": {"width": 320, "height": 640}, "zoom": {"width": 320, "height": 256}}
FOCUSED = """() => {
  const held = document.activeElement, top = held.getBoundingClientRect().top;
  return [held.innerText, top >= 0 && top < innerHeight];
}"""


@pytest.mark.parametrize("window", WINDOWS)
def test_an_error_is_in_sight(sandbox: Sandbox, chromium: Browser, window: str) -> None:
    """On a phone and at 400 % zoom: the title names it, the focus is on it, and it can be read."""
    person = Person(sandbox)
    with chromium.new_context(base_url=sandbox.origin, viewport=WINDOWS[window]) as context:
        page = context.new_page()

        def is_told(words: str) -> None:
            page.locator(":focus", has_text=words).wait_for()
            text, in_sight = page.evaluate(FOCUSED)
            assert words in text
            assert in_sight, words
            assert page.title().startswith("Error: ")

        sign_in(page, "/account/verify", person.account["email"], "wrong")
        is_told("do not match an account")
        sign_in(page, "/account/verify", person.account["email"], person.account["password"])
        page.fill("[name=bvn]", "1")
        page.locator("[name=bvn]").press("Enter")
        is_told("exactly 11 digits")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == "bvn"
        page.fill("[name=bvn]", "33333333333")
        page.locator("[name=bvn]").press("Enter")
        is_told("the number was not found")
        page.goto("/account/connect-codes/new")
        page.fill("[name=password]", "wrong")
        page.locator("[name=password]").press("Enter")
        is_told("That is not your password")


def test_the_pages_run_from_right_to_left(sandbox: Sandbox, chromium: Browser) -> None:
    """In Arabic each page of a person fits too, axe finds nothing, and the direction is set."""
    person, application = Person(sandbox, verified=True), Application(sandbox)
    person.consent_to(application)
    with chromium.new_context(base_url=sandbox.origin, locale="ar") as context:
        page = context.new_page()
        page.goto(application.authorization_url(Pkce()))
        look_at(page, "ar-sign-in")
        page.goto("/account/new")
        look_at(page, "ar-make-person")
        page.goto("/nowhere")
        look_at(page, "ar-not-found")
        page.goto("/account/sign-in")
        page.evaluate(UNFOLD)
        page.fill("[name=email]", person.account["email"])
        page.fill("[name=password]", person.account["password"])
        page.locator("[name=password]").press("Enter")
        page.locator(".page-title").wait_for()
        look_at(page, "ar-account")
        page.goto(application.authorization_url(Pkce()))
        look_at(page, "ar-consent")
        for name in ("verify", "delete", "connect-codes/new"):
            page.goto(f"/account/{name}")
            look_at(page, f"ar-{name.partition('/')[0]}")
        page.fill("[name=password]", person.account["password"])
        page.locator("[name=password]").press("Enter")
        page.locator(".connect-code").wait_for()
        look_at(page, "ar-code")
        assert page.evaluate("document.documentElement.dir") == "rtl"
        page.goto("/")
        look_at(page, "ar-console")


def test_a_developer_watches_and_acts(sandbox: Sandbox, page: Page) -> None:
    """A request appears without a reload; buttons work; each page of the console fits."""
    application, person = Application(sandbox), Person(sandbox, verified=True)
    with Receiver() as receiver:
        application.receive_at(receiver.url)
        page.goto("/")
        page.get_by_text("Live", exact=True).wait_for()
        person.tokens_for(application)
        page.locator(".activity-delivery", has_text=receiver.url).first.wait_for()
        page.select_option("[name=person]", label="Ada Okafor (ada@sandbox.example)")
        page.get_by_role("button", name="Revoke the claim").click()
        page.get_by_text("Ada Okafor: the claim “Identity verified” is revoked.").wait_for()
        look_at(page, "console")
        page.get_by_role("link", name="Credential").click()
        page.get_by_role("button", name="Issue and take apart").click()
        page.get_by_text("The signature is right").wait_for()
        look_at(page, "console-credential")
        page.get_by_role("link", name="Switches").click()
        page.get_by_label("decoys").fill("3")
        follow(page, page.get_by_role("button", name="Save"))
        look_at(page, "console-switches")
        assert sandbox.control("GET", "switches")["decoys"] == 3


def test_the_console_says_that_the_connection_is_lost(page: Page) -> None:
    """The sandbox was stopped: the page says so and tries again."""
    with Sandbox() as stopping:
        page.goto(stopping.origin)
        page.get_by_text("Live", exact=True).wait_for()
        stopping.stop()
        page.get_by_text("Connection lost, trying again").wait_for()


def test_the_console_works_without_scripts(sandbox: Sandbox, chromium: Browser) -> None:
    """What happened is there after a reload."""
    with chromium.new_context(base_url=sandbox.origin, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_text("Reload to see what is new").wait_for()
        sandbox.client.get("/api/v1/without-scripts")
        page.reload()
        page.get_by_text("GET /api/v1/without-scripts").wait_for()
        page.get_by_role("button", name="Rotate it").click()
        page.get_by_text("A new key signs").wait_for()
