"""The pictures of the documentation: ``python -m tests.browser.pictures [NAME…]`` draws them anew.

The people are those of the tests, in the states that the pages are about.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from playwright.sync_api import Browser, Page, sync_playwright

from example_project.demo.members import SUPERUSER
from example_project.demo.processes import HOST, free_port
from example_project.demo.site import HISTORY, OPERATORS
from tests.example_project.site import BARE, EXAMPLE, Site, running_site

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SERVICE = "Sandbox Identity"
#: Pixels. A picture of a long page ends here.
TALLEST = 2400
SANDBOX_PORT = free_port()
#: On another host than the site, like a real service.
SANDBOX = f"http://localhost:{SANDBOX_PORT}/"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A page: its file, its site, who looks at it, its largest size, and what is done first."""

    name: str
    site: str
    path: str
    person: str = ""
    width: int = 768
    height: int = TALLEST
    scheme: str = "light"
    locale: str = "en-US"
    prepare: Callable[[Page], object] = lambda page: None


def unfold(page: Page) -> None:
    for summary in page.locator("details:not(.identity-kind) > summary").all():
        summary.click()


def open_person(page: Page) -> None:
    page.locator("#result_list tbody th a").first.click()
    page.wait_for_url("**/change/**")


def sign_in_at_the_sandbox(page: Page) -> None:
    page.get_by_role("button", name=SERVICE).first.click()
    page.get_by_role("button", name="Continue as Ada").wait_for()


def ask_ada(page: Page) -> None:
    """From the closed gate to the consent."""
    sign_in_at_the_sandbox(page)
    page.get_by_role("button", name="Continue as Ada").click()
    page.locator("button[name=allow]").wait_for()


def let_ada_in(page: Page) -> None:
    ask_ada(page)
    page.locator("button[name=allow]").click()
    page.wait_for_url("**/adults/")


def sign_in_to_the_admin(page: Page) -> None:
    # What the overview shows first stays for a minute: by now the worker has begun its upkeep.
    page.wait_for_timeout(20_000)
    page.fill("#id_username", SUPERUSER.name)
    page.fill("#id_password", SUPERUSER.password)
    page.locator("[type=submit]").click()
    page.locator(".identity-overview").wait_for()


def let_something_happen(page: Page) -> None:
    """Ada signs in and loses a claim, so that the console's list has lines of each kind."""
    ask_ada(page)
    page.locator("button[name=allow]").click()
    page.get_by_text("You are signed in").first.wait_for()
    page.goto(SANDBOX)
    page.get_by_role("button", name="Revoke the claim").click()
    page.locator(".activity-delivery", has_text="claim.revoked").first.wait_for()


ADMIN = "/admin/django_identity"
MISSING = "/identity/login/?missing="
#: Three of them stand side by side.
SMALL: dict[str, Any] = {"width": 390, "height": 900}
PICTURES = (
    Picture(name="sign-in", site="example", path=f"{MISSING}age_over_18&next=/adults/"),
    Picture(
        name="account",
        site="example",
        path="/identity/account/",
        person="proven",
        prepare=unfold,
    ),
    Picture(
        name="account-ar",
        site="example",
        path="/identity/account/",
        person="proven",
        width=320,
        locale="ar",
    ),
    Picture(name="gate-closed", site="example", path="/residents/", person="run_out"),
    Picture(name="buttons", site="bare", path="/", width=320),
    Picture(name="circle", site="example", path="/", width=1280, scheme="dark"),
    Picture(name="confirm", site="example", path="/leave/", person="proven", width=390),
    Picture(
        name="one-scope-more",
        site="example",
        path=f"{MISSING}documents:read",
        person="proven",
        width=390,
    ),
    Picture(
        name="admin-identity",
        site="operated",
        path=f"{ADMIN}/linkedidentity/?q=hadiza",
        person="operator",
        width=1280,
        prepare=open_person,
    ),
    Picture(name="demo-closed", site="demo", path="/adults/", **SMALL),
    Picture(
        name="demo-consent",
        site="demo",
        path="/adults/",
        prepare=ask_ada,
        **SMALL,
    ),
    Picture(
        name="demo-open",
        site="demo",
        path="/adults/",
        prepare=let_ada_in,
        **SMALL,
    ),
    Picture(
        name="sandbox-sign-in",
        site="demo",
        path="/identity/login/",
        width=1280,
        prepare=sign_in_at_the_sandbox,
    ),
    Picture(
        name="sandbox-console",
        site="demo",
        path="/identity/login/",
        width=1280,
        prepare=let_something_happen,
    ),
    Picture(
        name="admin-overview",
        site="demo",
        path=f"/admin/login/?next={ADMIN}/overview/",
        width=1280,
        prepare=sign_in_to_the_admin,
    ),
)


@contextmanager
def at(name: str) -> Iterator[Site]:
    """The example project, the bare pages, the operators' site, or the demo with its sandbox."""
    # They read Django's settings, which ``main`` has set up.
    from example_project.circle.management.commands.demo import started  # noqa: PLC0415
    from tests.fake_service import serving  # noqa: PLC0415

    with TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        if name == "demo":
            port, database = free_port(), folder / "demo.sqlite3"
            wanted = (OPERATORS, HISTORY)
            stack.enter_context(
                started(port, SANDBOX_PORT, database, folder, wanted=wanted),
            )
            yield Site(f"http://{HOST}:{port}", {})
            return
        service = stack.enter_context(serving())
        running = running_site(
            folder,
            service.settings(),
            settings=BARE if name == "bare" else EXAMPLE,
            IDENTITY_SERVICE_NAME=SERVICE,
            IDENTITY_LATER_SCOPES="documents:read",
        )
        site = stack.enter_context(running)
        yield Site(site.address, site.sessions)


def draw(picture: Picture, browser: Browser, place: Site) -> None:
    context = browser.new_context(
        base_url=place.address,
        viewport={"width": picture.width, "height": 800},
        locale=picture.locale,
        color_scheme=picture.scheme,
    )
    with context:
        if picture.person:
            key = place.sessions[picture.person]
            context.add_cookies(
                [{"name": "sessionid", "value": key, "url": place.address}],
            )
        page = context.new_page()
        page.goto(picture.path)
        picture.prepare(page)
        tall = min(
            picture.height,
            page.evaluate("document.documentElement.scrollHeight"),
        )
        page.screenshot(
            path=IMAGES / f"{picture.name}.png",
            clip={"x": 0, "y": 0, "width": picture.width, "height": tall},
            full_page=True,
            animations="disabled",
        )


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    from tests.browser.conftest import CHROMIUM  # noqa: PLC0415

    names = sys.argv[1:] or [picture.name for picture in PICTURES]
    wanted = [picture for picture in PICTURES if picture.name in names]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**CHROMIUM)
        for site in dict.fromkeys(picture.site for picture in wanted):
            with at(site) as place:
                for picture in wanted:
                    if picture.site == site:
                        draw(picture, browser, place)
        browser.close()


if __name__ == "__main__":
    main()
