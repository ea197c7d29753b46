"""The admin in Chromium: its pages fit and are accessible, and its actions say how they went."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.gallery import Exhibit, Way, at
from tests.browser.page_looks import Look, looks_well, looks_well_on_paper, shoot
from tests.example_project.people import CLOSED_OUT, REFETCHABLE
from tests.example_project.site import Site, running_site
from tests.fake_service import serving

LOOKS = (Look(320), Look(768), Look(1280, "dark"))
HERE = "/admin/django_identity"
IDENTITIES = f"{HERE}/linkedidentity/"
EVENTS = f"{HERE}/webhookevent/"
RECEIPTS = f"{HERE}/erasurereceipt/"
OVERVIEW = f"{HERE}/overview/"


@pytest.fixture(scope="module")
def operated_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Its service knows the one person whose claims can be re-fetched."""
    folder = tmp_path_factory.mktemp("operated")
    with (
        serving(subject=REFETCHABLE) as service,
        running_site(folder, service.settings(TIMEOUT=3)) as site,
    ):
        yield site


@pytest.fixture
def operator(visit: Visit, operated_site: Site) -> Page:
    return visit(operated_site, "operator")


def look(page: Page, name: str) -> None:
    """At 320, 768 and 1280 px, light and dark: it fits, and axe finds nothing."""
    looks_well(page, f"admin/{name}", LOOKS, ours=False)


def the_first(path: str) -> Way:
    """The page of what stands first in the list."""

    def way(page: Page) -> None:
        page.goto(path)
        page.locator("#result_list tbody th a").first.click()
        page.wait_for_url("**/change/**")

    return way


def person(name: str) -> Way:
    """A person's page, found as an operator finds it."""
    return the_first(f"{IDENTITIES}?q={name}")


PAGES = (
    Exhibit("index", at("/admin/")),
    Exhibit("identities", at(IDENTITIES)),
    Exhibit(
        "identities-filtered",
        at(f"{IDENTITIES}?failing=yes&environment__exact=test"),
    ),
    Exhibit("identities-nobody", at(f"{IDENTITIES}?q=nobody")),
    *(
        Exhibit(f"identity-{name}", person(name))
        for name in (CLOSED_OUT, "ada", "dayo", "musa")
    ),
    Exhibit("identity-history", at(f"{IDENTITIES}1/history/")),
    Exhibit("events", at(EVENTS)),
    Exhibit(
        "events-filtered",
        at(f"{EVENTS}?type=kyc.verified&outcome__exact=applied"),
    ),
    Exhibit("events-none", at(f"{EVENTS}?q=nothing")),
    Exhibit(
        "event",
        the_first(f"{EVENTS}?type=kyc.verified&q=5e0f6a52-9f0e-4f9f-8f3c-5f0a4c0f1d77"),
    ),
    Exhibit("event-failed", the_first(f"{EVENTS}?outcome__exact=failed")),
    Exhibit("event-emptied", the_first(f"{EVENTS}?q=by-code-alone")),
    Exhibit("receipts", at(RECEIPTS)),
    Exhibit("receipt-pending", the_first(f"{RECEIPTS}?state=pending")),
    Exhibit("receipt", the_first(f"{RECEIPTS}?state=erased")),
    Exhibit("overview", at(OVERVIEW)),
)


@pytest.mark.parametrize("exhibit", PAGES, ids=str)
def test_a_page_of_the_admin(operator, exhibit):
    exhibit.way(operator)
    look(operator, exhibit.name)


@pytest.mark.parametrize("exhibit", PAGES, ids=str)
def test_a_page_from_right_to_left(visit, operated_site, exhibit):
    """In Arabic: it runs from right to left, it fits, and axe finds nothing."""
    page = visit(operated_site, "operator", locale="ar")
    exhibit.way(page)
    assert page.evaluate("document.documentElement.dir") == "rtl"
    looks_well(page, f"rtl/admin-{exhibit.name}", (Look(320), Look(1280)), ours=False)


CUT = """() => [...document.querySelectorAll('.results, #result_list td, #result_list th')]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 90))"""
LONG_NAME = """document.querySelector('#result_list tbody th a').textContent =
  'oluwaseun.adebayo-adeyemi@mail.a-rather-long-domain.example'"""


@pytest.mark.parametrize(
    "path",
    [IDENTITIES, EVENTS, RECEIPTS],
    ids=["identities", "events", "receipts"],
)
@pytest.mark.parametrize("locale", ["en-US", "ar", "pt-BR", "fr"])
def test_a_list_is_not_cut_by_its_filters(visit, operated_site, path, locale):
    """At 1280 px, with the sidebar and the filters open, no column has to be scrolled to."""
    page = visit(operated_site, "operator", locale=locale)
    page.goto(path)
    if page.locator("#main.shifted").count() == 0:
        page.locator("#toggle-nav-sidebar").click()
        page.locator("#main.shifted").wait_for()
    assert page.locator("#changelist-filter").is_visible()
    page.evaluate(LONG_NAME)
    shoot(page, f"admin/list-{path.split('/')[-2]}-{locale}")
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("path", [IDENTITIES, RECEIPTS, OVERVIEW])
def test_paper_has_dark_text_and_no_buttons(operator, path):
    """An operator prints a receipt."""
    way = at(path) if path == OVERVIEW else the_first(path)
    way(operator)
    looks_well_on_paper(operator, "button, nav.sticky, input[type=submit]")


def press(page: Page, button: str) -> None:
    """And wait for the next page: a click alone returns while the old one is still there."""
    with page.expect_navigation():
        page.get_by_role("button", name=button).click()


def ask(page: Page, name: str, button: str) -> None:
    """From the person's page to the question that an action asks."""
    person(name)(page)
    press(page, button)


def test_the_admin_works_without_javascript(visit, operated_site):
    page = visit(operated_site, "operator", java_script_enabled=False)
    ask(page, "ada", "Revoke at this site")
    assert page.get_by_role("button", name="Revoke").is_visible()


@pytest.mark.parametrize("button", ["Revoke at this site", "Disconnect", "Erase"])
def test_every_action_asks_before_it_acts(operator, button):
    """The confirmation page of every action; leaving it does nothing."""
    ask(operator, "ada", button)
    look(operator, f"ask-{button.split()[0].lower()}")
    operator.get_by_role("link", name="Cancel").click()
    operator.get_by_role("heading", name="ada").wait_for()


def ask_about_all(page: Page, search: str, action: str) -> None:
    """From the list to the question that an action asks about everybody in it."""
    page.goto(IDENTITIES + search)
    page.locator("#action-toggle").check()
    page.get_by_label("Action:").select_option(action)
    press(page, "Go")


def test_an_action_asks_about_several(operator):
    """Everybody who was chosen is named. Or one, who is revoked: the message says how it went."""
    ask_about_all(operator, "", "disconnect")
    operator.locator(".identity-chosen li").nth(5).wait_for()
    look(operator, "ask-disconnect-many")
    ask_about_all(operator, "?q=gozie", "revoke")
    press(operator, "Revoke")
    operator.get_by_text("1 identity was revoked.").wait_for()
    look(operator, "done-revoke")


def test_an_action_that_fails_says_so(operator):
    """Of somebody whom the service does not know."""
    ask(operator, "ada", "Re-fetch now")
    operator.get_by_text("The last re-fetch failed:").first.wait_for()
    look(operator, "done-ada")


def test_buttons_are_seen_in_forced_colours(operator):
    """Without a border "Erase" and "Cancel" are two words of a text."""
    operator.emulate_media(forced_colors="active")
    operator.goto(f"{IDENTITIES}?q=musa")
    operator.locator("#result_list tbody th a").first.click()
    operator.wait_for_url("**/change/**")
    operator.locator(".identity-tools form:has([value=erase]) button").click()
    widths = operator.locator(".identity-buttons .button").evaluate_all(
        "all => all.map(each => getComputedStyle(each).borderTopWidth)",
    )
    assert widths
    assert "0px" not in widths
    operator.emulate_media(forced_colors="none")
