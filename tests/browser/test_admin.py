"""The admin in Chromium: every page and action fits, is accessible and needs no looser policy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.browser.conftest import Visit, Visitor
from tests.browser.gallery import Exhibit, at
from tests.browser.looking import latin_words, overflow, shoot, violations
from tests.example_project.operators import CLOSED_OUT, REFETCHABLE
from tests.example_project.site import OPERATED, Site, running_site
from tests.hostile import HostileService, hostile_service

pytestmark = pytest.mark.browser

WIDTHS = (320, 768, 1280)
SCHEMES = ("light", "dark")
HERE = "/admin/django_identity"
IDENTITIES = f"{HERE}/linkedidentity/"
EVENTS = f"{HERE}/webhookevent/"
RECEIPTS = f"{HERE}/erasurereceipt/"
OVERVIEW = f"{HERE}/overview/"
SHOP = f"{OVERVIEW}?of=shop"
#: What stays in Latin letters on an Arabic page: names, and what is searched for as it is.
NAMES = {"ada", "dayo", "hadiza", "musa"}
NAMED = re.compile(
    r"^(Django|KYC|KYC-|Verify|Ltd|Identity|Connect|default|shop|ENCRYPTION_KEYS|CLIENT_ID|CLIENT_SECRET"
    r"|BASE_URL|ENVIRONMENT|RATE_LIMIT|UTC|operator|[a-z]+_[a-z_]+|[a-z]+\.[a-z_]+|[a-z]+@example\.org)$"
)


@pytest.fixture(scope="module")
def operated_service() -> Iterator[HostileService]:
    """A service that knows the one person whose claims can be re-fetched."""
    with hostile_service(subject=REFETCHABLE) as running:
        yield running


@pytest.fixture(scope="module")
def operated_site(
    operated_service: HostileService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("operated")
    with running_site(folder, operated_service.settings(TIMEOUT=3), settings=OPERATED) as site:
        yield site


@pytest.fixture
def operator(visit: Visit, operated_site: Site) -> Visitor:
    return visit(operated_site, person="operator")


def look(visitor: Visitor, name: str) -> None:
    """At 320, 768 and 1280 px, light and dark: it fits, axe finds nothing, the policy holds."""
    policy = [text for text in visitor.complaints if "Content Security Policy" in text]
    assert policy == []
    found = []
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            visitor.page.set_viewport_size({"width": width, "height": 800})
            shoot(visitor.page, f"admin/{name}-{width}-{scheme}")
            wrong = (*overflow(visitor.page), *violations(visitor.page))
            found += [(width, scheme, what) for what in wrong]
    assert found == []
    # axe tries styles of its own, which the policy refuses: not the page's doing.
    visitor.complaints.clear()
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.page.emulate_media(color_scheme="light")


def of(username: str) -> Exhibit:
    """The page of one person, found as an operator finds it."""

    def way(visitor: Visitor) -> None:
        visitor.go(f"{IDENTITIES}?q={username}")
        visitor.page.locator("#result_list tbody th a").first.click()

    return Exhibit(f"identity-{username}", way)


def the_first(path: str, name: str) -> Exhibit:
    def way(visitor: Visitor) -> None:
        visitor.go(path)
        visitor.page.locator("#result_list tbody th a").first.click()

    return Exhibit(name, way)


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
    the_first(f"{RECEIPTS}?erased=pending", "receipt-pending"),
    the_first(f"{RECEIPTS}?erased=done", "receipt"),
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
    """In Arabic: it runs from right to left, it fits, and nothing of ours stays in English."""
    visitor = visit(operated_site, person="operator", locale="ar")
    exhibit.way(visitor)
    page = visitor.page
    assert page.evaluate("document.documentElement.dir") == "rtl"
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        shoot(page, f"rtl/admin-{exhibit.name}-{width}")
        assert overflow(page) == []
    people = set(page.locator(".field-person, h2").all_inner_texts())
    found = {word for word in latin_words(page) if not NAMED.match(word)}
    assert found - people - NAMES == set()


def ask(visitor: Visitor, username: str, button: str) -> None:
    """From the person's page to the question that an action asks."""
    of(username).way(visitor)
    visitor.page.get_by_role("button", name=button).click()


@pytest.mark.parametrize(
    ("button", "name"),
    [("Re-fetch now", "ask-refetch"), ("Check the credential now", "ask-check"),
     ("Revoke at this site", "ask-revoke"), ("Erase", "ask-erase")],
)  # fmt: skip
def test_an_action_asks(operator: Visitor, button: str, name: str) -> None:
    """The confirmation page of every action; leaving it does nothing."""
    ask(operator, "ada", button)
    look(operator, name)
    operator.page.get_by_role("link", name="Do nothing").click()
    operator.page.get_by_role("heading", name="ada").wait_for()


def test_an_action_asks_about_several(operator: Visitor) -> None:
    """Everybody who was chosen is named; leaving leads back to the list."""
    operator.go(IDENTITIES)
    operator.page.locator("#action-toggle").check()
    operator.page.get_by_label("Action:").select_option("refetch")
    operator.page.get_by_role("button", name="Go").click()
    assert operator.page.locator(".identity-chosen li").count() > 5
    look(operator, "ask-refetch-many")
    operator.page.get_by_role("link", name="Do nothing").click()
    operator.page.locator("#result_list").wait_for()


def test_a_check_that_finds_something(operator: Visitor) -> None:
    """A credential that nobody would believe, and then none at all."""
    ask(operator, "lola", "Check the credential now")
    operator.page.get_by_role("button", name="Check").click()
    operator.page.get_by_text("The credential was rejected.").wait_for()
    look(operator, "failed-check")
    ask(operator, "musa", "Check the credential now")
    operator.page.get_by_role("button", name="Check").click()
    operator.page.get_by_text("There is no credential").wait_for()
    look(operator, "nothing-to-check")


def test_the_overview_leads_to_what_needs_attention(operator: Visitor) -> None:
    """From a failing re-fetch to the person; an application without records says so."""
    operator.go("/admin/")
    operator.page.get_by_role("link", name="Overview", exact=True).first.click()
    operator.page.get_by_role("link", name=CLOSED_OUT).first.click()
    operator.page.get_by_role("heading", name=CLOSED_OUT).wait_for()
    operator.go(OVERVIEW)
    operator.page.get_by_role("link", name="shop").click()
    assert operator.page.get_by_text("0 linked identities").is_visible()
    assert operator.page.get_by_text("Nothing yet.").count() == 7
    assert operator.page.locator("svg[role=img]").count() == 0


def test_a_refetch_and_a_check(operator: Visitor) -> None:
    """Re-fetch, read the message, then see every check of the new credential pass."""
    ask(operator, "imani", "Re-fetch now")
    operator.page.get_by_role("button", name="Re-fetch").click()
    operator.page.get_by_text("1 identity was re-fetched.").wait_for()
    look(operator, "done-refetch")
    operator.page.get_by_role("button", name="Check the credential now").click()
    operator.page.get_by_role("button", name="Check").click()
    operator.page.get_by_text("Every check was passed.").wait_for()
    look(operator, "done-check")


def test_a_refetch_that_fails(operator: Visitor) -> None:
    """A person whom the service does not know: the message says what went wrong."""
    ask(operator, "femi", "Re-fetch now")
    operator.page.get_by_role("button", name="Re-fetch").click()
    operator.page.get_by_text("1 re-fetch failed:").wait_for()
    look(operator, "failed-refetch")


def test_a_revocation(operator: Visitor) -> None:
    """From the list this time: choose two, confirm, read the message."""
    operator.go(f"{IDENTITIES}?q=gozie")
    operator.page.locator("#result_list tbody input[type=checkbox]").first.check()
    operator.page.get_by_label("Action:").select_option("revoke")
    operator.page.get_by_role("button", name="Go").click()
    operator.page.get_by_role("button", name="Revoke").click()
    operator.page.get_by_text("1 identity was revoked.").wait_for()
    look(operator, "done-revoke")


def test_an_erasure(operator: Visitor) -> None:
    """A slip is refused beside the field; the subject, typed, erases."""
    ask(operator, "jide", "Erase")
    operator.page.get_by_label("Type the subject to confirm").fill("something else")
    operator.page.get_by_role("button", name="Erase for good").click()
    operator.page.get_by_text("That is not the subject of this identity.").wait_for()
    look(operator, "ask-erase-again")
    operator.page.get_by_label("Type the subject to confirm").fill("type-me-to-erase")
    operator.page.get_by_role("button", name="Erase for good").click()
    operator.page.get_by_text("The person was erased.").wait_for()
    look(operator, "done-erase")


def test_a_replay_and_a_copy(operator: Visitor) -> None:
    """A failed event's handlers run again; its copy is a file to download."""
    operator.go(f"{EVENTS}?outcome__exact=failed")
    operator.page.locator("#result_list tbody th a").first.click()
    with operator.page.expect_download() as download:
        operator.page.get_by_role("button", name="Copy as a script for support").click()
    assert download.value.suggested_filename.endswith(".sh")
    operator.page.get_by_role("button", name="Replay the site's handlers").click()
    look(operator, "ask-replay")
    operator.page.get_by_role("button", name="Replay", exact=True).click()
    operator.page.get_by_text("The handlers of 1 event run again.").wait_for()
    look(operator, "done-replay")


def test_a_new_operator_finds_out_why(operator: Visitor) -> None:
    """Three clicks from the admin's index to why one person cannot pass the age gate.

    They stand in docs/admin.md: the list, the search, the person.
    """
    page, clicks = operator.page, 0

    def click(role: str, name: str) -> None:
        nonlocal clicks
        page.get_by_role(role, name=name, exact=True).first.click()
        clicks += 1

    operator.go("/admin/")
    click("link", "Linked identities")
    page.locator("#searchbar").fill(f"{CLOSED_OUT}@example.org")
    click("button", "Search")
    click("link", CLOSED_OUT)
    gate = page.locator(".identity-gates > div", has_text="age_over_18")
    gate.get_by_text("closed").wait_for()
    assert "The proof ran out" in gate.inner_text()
    assert "Ran out 2 h ago" in gate.inner_text()
    assert page.get_by_text("The service could not be reached.").is_visible()
    assert clicks < 5


def test_without_javascript(visit: Visit, operated_site: Site) -> None:
    """Lists, pages and questions work in a browser that runs no script."""
    visitor = visit(operated_site, person="operator", java_script_enabled=False)
    ask(visitor, "ada", "Revoke at this site")
    assert visitor.page.get_by_role("button", name="Revoke").is_visible()
    visitor.go(f"{HERE}/overview/")
    visitor.page.get_by_text("As a table").first.click()
    assert visitor.page.locator("details table").first.is_visible()
