"""The sandbox's own pages in the browser: a person's account and the developer's portal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.looking import overflow, shoot, violations
from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import Receiver, until

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
    page.fill("[name=email]", email)
    page.fill("[name=password]", password)
    page.get_by_role("button", name="Sign in").click()


def look_at(page: Page, name: str) -> None:
    """At 320 and 1280 px nothing scrolls sideways and axe finds nothing."""
    for more in page.locator("summary").all():
        more.click()
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        shoot(page, f"sandbox-{name}-{width}")
        assert (overflow(page), violations(page)) == ([], []), f"{name}, {width} px"


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
        page.get_by_role("link", name="consent.granted").click()
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
    sign_in(page, "/account/", person.account["email"], person.account["password"])
    look_at(page, "account")
    for name in ("verify", "delete"):
        page.goto(f"/account/{name}")
        look_at(page, name)
