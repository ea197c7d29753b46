"""The sandbox's own pages in the browser: a person's account and the developer's portal."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Window
from tests.browser.page_looks import Look, looks_well
from tests.sandbox.driver import Application, Person, Sandbox, started
from tests.sandbox.receiver import Receiver

UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with started() as sandbox:
        yield sandbox


@pytest.fixture
def page(sandbox: Sandbox, window: Window) -> Page:
    return window(base_url=sandbox.origin)


def look_at(page: Page, name: str) -> None:
    """At 320 and 1280 px nothing scrolls sideways and axe finds nothing."""
    page.evaluate(UNFOLD)
    looks_well(page, f"sandbox-{name}", (Look(320), Look(1280)))


def test_a_person_looks_after_the_account(sandbox, page):
    """Each page fits: sign-in, account, verification, deletion."""
    person = Person(sandbox, verified=True)
    person.consent_to(Application(sandbox))
    person.cause("claims/age_over_18/revoke")
    page.goto("/nowhere")
    look_at(page, "not-found")
    page.goto("/account/")
    look_at(page, "sign-in")
    page.fill("[name=email]", person.account["email"])
    page.fill("[name=password]", person.account["password"])
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in").click()
    look_at(page, "account")
    for name in ("verify", "delete"):
        page.goto(f"/account/{name}")
        look_at(page, name)


def test_a_developer_watches_and_acts(sandbox, page):
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
        page.get_by_text("Ada Okafor: the claim is revoked.").wait_for()
        look_at(page, "console")
        page.get_by_role("link", name="Credential").click()
        claims = person.read(person.tokens_for(application), "claims").json()["data"]
        page.fill("[name=credential]", claims["credential"])
        page.get_by_role("button", name="Take it apart").click()
        page.get_by_text("A published key signed it").wait_for()
        look_at(page, "console-credential")
        page.get_by_role("link", name="Switches").click()
        look_at(page, "console-switches")
