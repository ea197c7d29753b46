"""The demo as a person walks it in the browser: the site, the sandbox, and the people of both."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from playwright.sync_api import Page

from example_project.circle.management.commands.demo import pages_of, started
from example_project.demo.members import MEMBERS, OPERATOR, SUPERUSER, Member
from example_project.demo.processes import HOST, free_port


@dataclass(frozen=True)
class Demo:
    """Addresses of the site and the sandbox's pages, and two of its people.

    ``env``: the environment of the site's processes. ``window()`` opens a window on the site.
    """

    site: str
    pages: str
    database: Path
    env: dict[str, str]
    people: list[dict[str, str]]
    window: Callable[..., Page]

    def session_of(self, member: Member, **options: Any) -> Page:
        """The page for codes, for somebody who signed in with the site's own password."""
        page = self.window(**options)
        page.goto("/identity/connect/")
        page.fill("[name=username]", member.name)
        page.fill("[name=password]", member.password)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/identity/connect/")
        return page

    def come_as(self, person: dict[str, str]) -> Page:
        """Press the button and allow, as ``person`` at the service."""
        page = self.window()
        page.goto("/identity/login/?next=/identity/account/")
        page.get_by_role("button", name="Continue with Sandbox Identity").click()
        give_password(page, person)
        page.locator("button[name=allow]").click()
        page.wait_for_url("**/identity/account/")
        return page


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


@pytest.fixture(scope="session")
def running_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """With ``SameSite=Strict``, the service on another host, and sessions that a test can read."""
    folder = tmp_path_factory.mktemp("demo")
    port = free_port()
    sandbox_port = free_port()
    database = folder / "demo.sqlite3"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
        patch.setenv("SESSION_COOKIE_SAMESITE", "Strict")
        patch.setenv("SECRET_KEY", settings.SECRET_KEY)
        # The site's own processes need its key, to read its sessions.
        key = {"SECRET_KEY": settings.SECRET_KEY}
        with started(port, sandbox_port, database, folder) as running:
            patch.undo()
            yield {
                "site": f"http://{HOST}:{port}",
                "pages": pages_of(sandbox_port),
                "database": database,
                "env": {**running.env, **key},
            }


@pytest.fixture
def demo(running_demo: dict[str, Any], window: Callable[..., Page]) -> Iterator[Demo]:
    """People of its own, the second one verified. What it leaves at the site is gone after it."""
    users = f"{running_demo['pages']}/sandbox/users"
    made = [httpx.post(users, json={"verified": is_so}) for is_so in (False, True)]
    people = [answer.json() for answer in made]
    opening = partial(window, base_url=running_demo["site"])
    yield Demo(**running_demo, people=people, window=opening)
    names = [member.name for member in (*MEMBERS, OPERATOR, SUPERUSER)]
    with closing(sqlite3.connect(running_demo["database"], timeout=60)) as site, site:
        tables = site.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        for (table,) in tables:
            if table.startswith("django_identity_") or table == "django_session":
                site.execute(f"DELETE FROM {table}")
        kept = ", ".join("?" * len(names))
        site.execute(f"DELETE FROM auth_user WHERE username NOT IN ({kept})", names)
