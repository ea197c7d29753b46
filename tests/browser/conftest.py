"""One Chromium, its windows, and the sites that the tests here share."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.example_project.site import BARE, Site, running_site
from tests.fake_service import serving

CHROMIUM = {
    "executable_path": "/usr/bin/chromium",
    "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
}
WIDE = {"width": 1280, "height": 800}
Window = Callable[..., Page]
Visit = Callable[..., Page]


class Windows:
    """Windows rest between two tests: a new one needs seconds until its scripts are fast.

    ``complaints``: of the sites' strict policy, and of errors in scripts.
    """

    def __init__(self, chromium: Browser) -> None:
        self.complaints: list[str] = []
        self._chromium = chromium
        self._resting: dict[str, list[Page]] = defaultdict(list)

    def open(self, **options: Any) -> Page:
        """One that knows nobody. ``options``: of Playwright's contexts."""
        resting = self._resting[json.dumps(options)]
        page = resting.pop() if resting else self._new(**options)
        page.set_viewport_size(options.get("viewport", WIDE))
        return page

    def rest(self, page: Page, **options: Any) -> None:
        """Forget who was there, and what the test had arranged."""
        page.unroute_all()
        page.context.clear_cookies()
        page.context.clear_permissions()
        for tab in page.context.pages:
            if tab is not page:
                tab.close()
        self._resting[json.dumps(options)].append(page)

    def _new(self, **options: Any) -> Page:
        context = self._chromium.new_context(**{"viewport": WIDE, **options})
        context.set_default_timeout(60_000)
        context.on("console", lambda message: self._hear(message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        return context.new_page()

    def _hear(self, text: str) -> None:
        if "Content Security Policy" in text:
            self.complaints.append(text)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def windows(chromium: Browser) -> Windows:
    return Windows(chromium)


@pytest.fixture
def window(windows: Windows) -> Iterator[Window]:
    """``window(locale="ar", …)`` opens one. No page may break the strict policy of its site."""
    opened: list[tuple[Page, dict[str, Any]]] = []

    def open_one(**options: Any) -> Page:
        page = windows.open(**options)
        opened.append((page, options))
        return page

    windows.complaints.clear()
    yield open_one
    for page, options in opened:
        windows.rest(page, **options)
    assert windows.complaints == []


@pytest.fixture
def visit(window: Window) -> Visit:
    """``visit(site, "proven", locale="ar", …)`` opens a window as that person at the site."""

    def enter(site: Site, person: str = "", **options: Any) -> Page:
        page = window(base_url=site.address, **options)
        if person:
            cookie = {
                "name": "sessionid",
                "value": site.sessions[person],
                "url": site.address,
            }
            page.context.add_cookies([cookie])
        return page

    return enter


@pytest.fixture(scope="session")
def example_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Somebody has an account here already with the address of the service's person."""
    folder = tmp_path_factory.mktemp("example")
    with (
        serving(profile={"email": "efe@example.org"}) as service,
        running_site(folder, service.settings()) as site,
    ):
        yield site


@pytest.fixture(scope="session")
def bare_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The package's pages as they are, with a strict session cookie."""
    folder = tmp_path_factory.mktemp("bare")
    with (
        serving() as service,
        running_site(folder, service.settings(), settings=BARE) as site,
    ):
        yield site
