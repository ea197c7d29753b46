"""The demo as a person walks it in the browser: the site, the sandbox, and the people of both."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from example_project.circle.management.commands.demo import pages_of, started
from example_project.demo.members import MEMBERS, OPERATOR, SUPERUSER, Member
from example_project.demo.processes import HOST, free_port

WIDE = {"viewport": {"width": 1280, "height": 800}}


@dataclass(frozen=True)
class Demo:
    """Addresses of the site, the sandbox's pages and its control, and two of its people."""

    site: str
    pages: str
    control: str
    database: Path
    people: list[Any]
    chromium: Browser

    def window(self, **options: Any) -> Page:
        page = self.chromium.new_context(**{**WIDE, **options}).new_page()
        page.set_default_timeout(60_000)
        return page

    def sign_in_locally(self, page: Page, member: Member) -> Page:
        page.goto(f"{self.site}/identity/connect/")
        page.fill("[name=username]", member.name)
        page.fill("[name=password]", member.password)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/identity/connect/")
        return page

    def session_of(self, member: Member, **options: Any) -> Page:
        return self.sign_in_locally(self.window(**options), member)

    def code_of(self, page: Page, person: dict[str, str]) -> str:
        return make_code(page, self.pages, person)

    def paste_code(self, page: Page, code: str) -> None:
        page.goto(f"{self.site}/identity/connect/?next=/loans/")
        page.fill("[name=connect_code]", code)
        page.get_by_role("button", name="Use this code").click()

    def come_as(self, page: Page, person: dict[str, str]) -> None:
        """Press the button and allow, as ``person`` at the service."""
        page.goto(f"{self.site}/identity/login/?next=/identity/account/")
        page.get_by_role("button", name="Continue with your identity service").click()
        give_password(page, person)
        page.locator("button[name=allow]").click()
        page.wait_for_url("**/identity/account/")

    def disconnect(self, page: Page) -> None:
        page.goto(f"{self.site}/identity/disconnect/")
        page.get_by_role("button", name="Disconnect").click()
        self.account(page).get_by_text("Your account is not connected").wait_for()

    def account(self, page: Page) -> Page:
        page.goto(f"{self.site}/identity/account/")
        return page

    def linked_accounts(self) -> list[str]:
        """The names of the accounts that an identity can sign in to."""
        with closing(sqlite3.connect(self.database)) as site:
            rows = site.execute(
                "SELECT username FROM django_identity_linkedidentity JOIN auth_user"
                " ON auth_user.id = user_id WHERE linked_via = 'oauth'"
            )
            return [name for (name,) in rows]


def make_code(page: Page, pages: str, person: dict[str, str]) -> str:
    """Sign in at the service, make a code and copy it."""
    page.goto(f"{pages}/account/connect-codes/new")
    if "/sign-in" in page.url:
        give_password(page, person)
        page.goto(f"{pages}/account/connect-codes/new")
    page.fill("[name=password]", person["password"])
    page.press("[name=password]", "Enter")
    return page.locator("#connect-code").inner_text()


def give_password(page: Page, person: dict[str, str]) -> None:
    page.get_by_text("Sign in with a password instead").click()
    page.fill("[name=email]", person["email"])
    page.fill("[name=password]", person["password"])
    page.press("[name=password]", "Enter")


@pytest.fixture(scope="session")
def running_demo(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """With ``SameSite=Strict``, and the service on another host."""
    folder, port, sandbox_port = tmp_path_factory.mktemp("demo"), free_port(), free_port()
    database = folder / "demo.sqlite3"
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
            patch.setenv("SESSION_COOKIE_SAMESITE", "Strict")
            stack.enter_context(started(port, sandbox_port, database, folder))
        control = f"http://{HOST}:{sandbox_port}/sandbox"
        pages = pages_of(sandbox_port)
        yield Demo(f"http://{HOST}:{port}", pages, control, database, [], chromium)


@pytest.fixture
def demo(running_demo: Demo) -> Iterator[Demo]:
    """People of its own, the second one verified. What it leaves at the site is gone after it."""
    names = [member.name for member in (*MEMBERS, OPERATOR, SUPERUSER)]
    users = f"{running_demo.control}/users"
    people = [httpx.post(users, json={"verified": is_so}).json() for is_so in (False, True)]
    yield replace(running_demo, people=people)
    with closing(sqlite3.connect(running_demo.database, timeout=60)) as site, site:
        tables = site.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table.startswith("django_identity_") or table == "django_session":
                site.execute(f"DELETE FROM {table}")
        kept = ", ".join("?" * len(names))
        site.execute(f"DELETE FROM auth_user WHERE username NOT IN ({kept})", names)
