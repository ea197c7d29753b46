"""One Chromium and two sites for all tests here: the example project, and a bare one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.demo import demo, running_demo  # noqa: F401
from tests.example_project.operators import REFETCHABLE
from tests.example_project.site import BARE, OPERATED, Site, running_site
from tests.fake_service import FakeService, serving

CHROMIUM = {
    "executable_path": "/usr/bin/chromium",
    "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
}


@dataclass(frozen=True)
class Visitor:
    """A browser window on a site; ``complaints`` is what its console said."""

    site: Site
    context: BrowserContext
    page: Page
    complaints: list[str]

    def go(self, path: str) -> None:
        self.page.goto(self.site.address + path)


Visit = Callable[..., Visitor]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service() -> Iterator[FakeService]:
    """A service that plays the spec; the address of its person has an account here already."""
    with serving(profile={"email": "efe@example.org"}) as running:
        yield running


@pytest.fixture(scope="session")
def example_site(service: FakeService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("example"), service.settings()) as site:
        yield site


@pytest.fixture(scope="session")
def bare_site(service: FakeService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The package's pages as they are, with a strict session cookie."""
    folder = tmp_path_factory.mktemp("bare")
    with running_site(folder, service.settings(), settings=BARE) as site:
        yield site


@pytest.fixture(scope="session")
def operated_service() -> Iterator[FakeService]:
    """A service that knows the one person whose claims can be re-fetched."""
    with serving(subject=REFETCHABLE) as running:
        yield running


@pytest.fixture(scope="session")
def operated_site(
    operated_service: FakeService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("operated")
    with running_site(folder, operated_service.settings(TIMEOUT=3), settings=OPERATED) as site:
        yield site


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """``visit(site, person="proven", java_script_enabled=False, …)`` opens a window of its own."""
    opened: list[BrowserContext] = []

    def enter(site: Site, *, person: str = "", **options: object) -> Visitor:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        opened.append(context)
        if person:
            cookie = {"name": "sessionid", "value": site.sessions[person], "url": site.address}
            context.add_cookies([cookie])
        page, complaints = context.new_page(), []
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return Visitor(site, context, page, complaints)

    yield enter
    for context in opened:
        context.close()


@pytest.fixture
def operator(visit: Visit, operated_site: Site) -> Visitor:
    return visit(operated_site, person="operator")
