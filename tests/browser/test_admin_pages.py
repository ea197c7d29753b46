"""The admin in Chromium: every page fits, is accessible and needs no looser policy."""

import pytest

from tests.browser.conftest import Visit, Visitor
from tests.browser.gallery import Exhibit, at
from tests.browser.looking import looks_well, shoot
from tests.browser.operating import (
    EVENTS,
    IDENTITIES,
    OVERVIEW,
    RECEIPTS,
    SHOP,
    ask,
    look,
    of,
    the_first,
)
from tests.example_project.operators import CLOSED_OUT
from tests.example_project.site import Site

PAGES = (
    Exhibit("index", at("/admin/")),
    Exhibit("identities", at(IDENTITIES)),
    Exhibit("identities-filtered", at(f"{IDENTITIES}?failing=yes&environment__exact=test")),
    Exhibit("identities-nobody", at(f"{IDENTITIES}?q=nobody")),
    of(CLOSED_OUT),
    of("ada"),
    of("dayo"),
    of("musa"),
    Exhibit("identity-history", at(f"{IDENTITIES}1/history/")),
    Exhibit("events", at(EVENTS)),
    Exhibit("events-filtered", at(f"{EVENTS}?type=kyc.verified&outcome__exact=applied")),
    Exhibit("events-none", at(f"{EVENTS}?q=nothing")),
    the_first(f"{EVENTS}?type=kyc.verified&q=5e0f6a52-9f0e-4f9f-8f3c-5f0a4c0f1d77", "event"),
    the_first(f"{EVENTS}?outcome__exact=failed", "event-failed"),
    the_first(f"{EVENTS}?q=by-code-alone", "event-emptied"),
    Exhibit("receipts", at(RECEIPTS)),
    the_first(f"{RECEIPTS}?erased_at__isempty=1", "receipt-pending"),
    the_first(f"{RECEIPTS}?erased_at__isempty=0", "receipt"),
    Exhibit("overview", at(OVERVIEW)),
    Exhibit("overview-empty", at(SHOP)),
)


@pytest.mark.parametrize("exhibit", PAGES, ids=str)
def test_a_page_of_the_admin(operator: Visitor, exhibit: Exhibit) -> None:
    """Every page of the admin, at every width and in both colour schemes."""
    exhibit.way(operator)
    look(operator, exhibit.name)


@pytest.mark.parametrize("exhibit", PAGES, ids=str)
def test_a_page_from_right_to_left(visit: Visit, operated_site: Site, exhibit: Exhibit) -> None:
    """In Arabic: it runs from right to left, it fits, and axe finds nothing."""
    visitor = visit(operated_site, person="operator", locale="ar")
    exhibit.way(visitor)
    page = visitor.page
    assert page.evaluate("document.documentElement.dir") == "rtl"
    looks_well(page, f"rtl/admin-{exhibit.name}", ((320, "light"), (1280, "light")), ours=False)


CUT = """() => [...document.querySelectorAll('.results, #result_list td, #result_list th')]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 90))"""
LONG_NAME = """document.querySelector('#result_list tbody th a').textContent =
  'oluwaseun.adebayo-adeyemi@mail.a-rather-long-domain.example'"""


@pytest.mark.parametrize(
    "path", [IDENTITIES, EVENTS, RECEIPTS], ids=["identities", "events", "receipts"]
)
@pytest.mark.parametrize("locale", ["en-US", "ar", "pt-BR", "fr"])
def test_a_list_is_not_cut_by_its_filters(
    visit: Visit, operated_site: Site, path: str, locale: str
) -> None:
    """At 1280 px, with the sidebar and the filters open, no column has to be scrolled to."""
    visitor = visit(operated_site, person="operator", locale=locale)
    visitor.go(path)
    page = visitor.page
    if page.locator("#main.shifted").count() == 0:
        page.locator("#toggle-nav-sidebar").click()
        page.locator("#main.shifted").wait_for()
    assert page.locator("#changelist-filter").is_visible()
    page.evaluate(LONG_NAME)
    shoot(page, f"admin/list-{path.split('/')[-2]}-{locale}")
    assert page.evaluate(CUT) == []


def test_who_may_only_look_sees_what_staff_did(visit: Visit, operated_site: Site) -> None:
    """The button leads to the page, also for an operator who may do nothing else."""
    visitor = visit(operated_site, person="looker")
    of(CLOSED_OUT).way(visitor)
    page = visitor.page
    assert page.locator(".identity-tools button").count() == 0
    page.get_by_role("link", name="Staff actions").click()
    page.get_by_role("heading", name="Change history").wait_for()
    assert page.get_by_text("403").count() == 0


def test_the_overview_leads_to_what_needs_attention(operator: Visitor) -> None:
    """From a failing re-fetch to those it fails for; an application without records says so."""
    operator.go(IDENTITIES)
    operator.page.get_by_role("link", name="Overview", exact=True).click()
    operator.page.get_by_text("not healthy").wait_for()
    operator.page.get_by_role("link", name="All failing re-fetches").click()
    operator.page.get_by_role("link", name=CLOSED_OUT).wait_for()
    operator.go(OVERVIEW)
    operator.page.get_by_role("link", name="shop").click()
    assert operator.page.get_by_text("0 linked identities").is_visible()
    assert operator.page.get_by_text("Nothing yet.").first.is_visible()


def test_a_new_operator_finds_out_why(operator: Visitor) -> None:
    """Three clicks from the admin's index to why one person cannot pass the age gate."""
    page = operator.page

    def click(role: str, name: str) -> None:
        page.get_by_role(role, name=name, exact=True).first.click()

    operator.go("/admin/")
    click("link", "Linked identities")
    page.locator("#searchbar").fill(f"{CLOSED_OUT}@example.org")
    click("button", "Search")
    click("link", CLOSED_OUT)
    gate = page.locator(".identity-gates > div", has_text="age_over_18").first
    gate.get_by_text("closed").wait_for()
    assert "Your proof ran out" in gate.inner_text()
    assert "2\xa0hours ago" in gate.inner_text()
    assert page.get_by_text("The service could not be reached.").is_visible()


def test_without_javascript(visit: Visit, operated_site: Site) -> None:
    """Lists, pages and questions work in a browser that runs no script."""
    visitor = visit(operated_site, person="operator", java_script_enabled=False)
    ask(visitor, "ada", "Revoke at this site")
    assert visitor.page.get_by_role("button", name="Revoke").is_visible()
