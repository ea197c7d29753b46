"""The demo in a real Chromium, and the sandbox's own pages.

``IDENTITY_SCREENSHOTS`` names a folder for pictures.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page

from example_project.circle.management.commands.demo import pages_of
from example_project.circle.management.commands.demo import started as started_demo
from example_project.demo.members import MEMBERS, Member
from example_project.demo.processes import HOST, free_port
from example_project.demo.walk import BVN
from tests.browser.conftest import Window
from tests.browser.page_looks import Look, looks_well, overflow, shoot
from tests.sandbox.driver import Application, Person, Sandbox, started
from tests.sandbox.receiver import Receiver

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780},
    "is_mobile": True,
    "has_touch": True,
}
CLIPBOARD = ["clipboard-read", "clipboard-write"]
LOOKS = (Look(320, text="200%"), Look(390), Look(1280))


@dataclass(frozen=True)
class Demo:
    """Addresses of the site and the sandbox's pages. ``window()`` opens a window on the site."""

    site: str
    pages: str
    window: Callable[..., Page]

    def new_person(self, *, verified: bool) -> dict[str, str]:
        made = httpx.post(f"{self.pages}/sandbox/users", json={"verified": verified})
        person: dict[str, str] = made.json()
        return person

    def session_of(self, member: Member, **options: Any) -> Page:
        """The page for codes, for somebody who signed in with the site's own password."""
        page = self.window(**options)
        page.goto("/identity/connect/")
        page.fill("[name=username]", member.name)
        page.fill("[name=password]", member.password)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/identity/connect/")
        return page


@pytest.fixture(scope="module")
def running_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """With ``SameSite=Strict``, and the service on another host."""
    folder = tmp_path_factory.mktemp("demo")
    port, sandbox_port = free_port(), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
        patch.setenv("SESSION_COOKIE_SAMESITE", "Strict")
        with started_demo(port, sandbox_port, folder / "demo.sqlite3", folder):
            patch.undo()
            yield f"http://{HOST}:{port}", pages_of(sandbox_port)


@pytest.fixture
def demo(running_demo: tuple[str, str], window: Window) -> Demo:
    site, pages = running_demo
    return Demo(site, pages, partial(window, base_url=site))


def account(page: Page) -> Page:
    page.goto("/identity/account/")
    return page


def make_code(page: Page, pages: str, person: dict[str, str]) -> str:
    """Sign in at the service, make a code and copy it."""
    page.goto(f"{pages}/account/connect-codes/new")
    give_password(page, person)
    page.goto(f"{pages}/account/connect-codes/new")
    page.fill("[name=password]", person["password"])
    page.press("[name=password]", "Enter")
    return page.locator("#connect-code").inner_text()


def give_password(page: Page, person: dict[str, str]) -> None:
    page.get_by_text("Sign in with a password instead").click()
    page.fill("[name=email]", person["email"])
    page.fill("[name=password]", person["password"])
    with page.expect_navigation():
        page.press("[name=password]", "Enter")


def test_the_walk_in_a_browser(demo):
    """Press the button, sign in, verify, consent: the page for adults opens.

    With SameSite=Strict and the service on another host: the callback still knows who started it.
    """
    page = demo.window()
    page.goto("/adults/")
    shoot(page, "1-login")
    page.get_by_role("button", name="Continue with Sandbox Identity").click()
    give_password(page, demo.new_person(verified=False))
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
        "button",
        name="Check again with Sandbox Identity",
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


@pytest.mark.parametrize(
    ("scripts", "member"),
    [(True, MEMBERS[0]), (False, MEMBERS[1])],
    ids=["scripts", "none"],
)
def test_a_person_pastes_a_code(demo, scripts, member):
    """From the account at the service to an open page, by one paste and one press."""
    code = make_code(demo.window(), demo.pages, demo.new_person(verified=True))
    page = demo.session_of(member, java_script_enabled=scripts, **PHONE)
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
    """Somebody new, who has signed in."""
    page = demo.window()
    page.goto("/identity/login/?next=/identity/account/")
    page.get_by_role("button", name="Continue with Sandbox Identity").click()
    give_password(page, demo.new_person(verified=True))
    page.locator("button[name=allow]").click()
    page.wait_for_url("**/identity/account/")
    return page


def is_open(page: Page, path: str) -> bool:
    page.goto(path)
    return urlsplit(page.url).path == path


def decide(
    page: Page,
    answer: str = "allow",
    *,
    without_documents: bool = False,
) -> None:
    page.get_by_role("button", name="Decide at Sandbox Identity").click()
    if without_documents:
        page.get_by_label("Do not share this").check()
    page.locator(f"button[name={answer}]").click()


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
