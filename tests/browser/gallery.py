"""Every page that a person can meet, and how to get there."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.page_looks import Look, looks_well
from tests.example_project.site import Site

Way = Callable[[Page], None]

LOGIN = "/identity/login/?missing="
MISSING = f"{LOGIN}country_resident="
EVERY_LOOK = tuple(
    Look(width, scheme) for scheme in ("light", "dark") for width in (320, 1280)
)
#: On a phone whose text is twice as large, and on a desk in the dark.
MAGNIFIED = (Look(320, text="200%"), Look(1280, "dark"))
EXTREMES = (EVERY_LOOK[0], EVERY_LOOK[-1])


@dataclass(frozen=True)
class Exhibit:
    """A page: its name in the screenshots, the way to it, and who looks at it (by state).

    ``looks``: width and colour scheme; the extremes are enough for another state of a page that
    has been seen in all of them.
    """

    name: str
    way: Way
    person: str = ""
    looks: tuple[Look, ...] = EVERY_LOOK

    def __str__(self) -> str:
        return self.name


def look_at(visit: Visit, site: Site, exhibit: Exhibit, folder: str) -> Page:
    """Go there and look: nothing scrolls sideways, axe finds nothing."""
    page = visit(site, exhibit.person)
    exhibit.way(page)
    looks_well(page, f"{folder}/{exhibit.name}", exhibit.looks)
    return page


def at(path: str) -> Way:
    return lambda page: page.goto(path)


def unfolded(page: Page) -> None:
    """The account page with everything unfolded."""
    page.goto("/identity/account/")
    for summary in page.locator("summary").all():
        summary.click()


def coming_back(**query: str) -> Way:
    """Press the button, and be sent back by the service with ``query``."""

    def way(page: Page) -> None:
        page.goto("/identity/login/")
        token = page.locator("main [name=csrfmiddlewaretoken]").first.input_value()
        pressed = page.context.request.post(
            "/identity/login/",
            form={"csrfmiddlewaretoken": token, "next": "/adults/"},
            max_redirects=0,
        )
        state = parse_qs(urlsplit(pressed.headers["location"]).query)["state"][0]
        page.goto("/identity/callback/?" + urlencode({**query, "state": state}))

    return way


def handing_in(code: str) -> Way:
    """Hand in a code that will be refused."""

    def way(page: Page) -> None:
        page.goto("/identity/connect/")
        page.fill("[name=connect_code]", code)
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()

    return way


def with_countries(page: Page) -> None:
    """The page of a gate for many countries, which are unfolded."""
    page.goto(
        f"{MISSING}AT|BE|BG|HR|CY|CZ|DK|EE|FI|FR|DE|GR|HU|IE|IT|LV|LT|LU|MT|NL|PL|PT|RO|SK",
    )
    page.locator("main summary").click()


def held_hop(page: Page) -> None:
    """The page between the service and the site, kept from going on by itself."""
    page.route("**/callback/**same_site=1*", lambda route: route.fulfill(status=204))
    coming_back(code="a-code")(page)


PAGES = (
    Exhibit("sign-in", at("/identity/login/?next=/adults/&missing=age_over_18")),
    Exhibit("sign-in-plain", at("/identity/login/"), looks=EXTREMES),
    Exhibit(
        "link",
        at("/identity/login/?missing=country_resident%3DNG"),
        "unlinked",
        looks=EXTREMES,
    ),
    Exhibit("a-few-countries", at(f"{MISSING}PT|FR|ES"), "abroad", looks=EXTREMES),
    Exhibit("many-countries", with_countries, "abroad"),
    Exhibit("renew", at("/identity/login/?missing=age_over_18"), "run_out"),
    Exhibit("account", at("/identity/account/"), "proven"),
    Exhibit("account-unfolded", unfolded, "proven"),
    Exhibit("account-run-out", at("/identity/account/"), "run_out", looks=EXTREMES),
    Exhibit("account-revoked", at("/identity/account/"), "revoked", looks=EXTREMES),
    Exhibit("account-withdrawn", at("/identity/account/"), "withdrawn", looks=EXTREMES),
    Exhibit("account-rejected", at("/identity/account/"), "rejected", looks=MAGNIFIED),
    Exhibit(
        "account-unverifiable",
        at("/identity/account/"),
        "unverifiable",
        looks=EXTREMES,
    ),
    Exhibit("account-by-code", at("/identity/account/"), "by_code"),
    Exhibit("account-unlinked", at("/identity/account/"), "unlinked"),
    Exhibit("connect", at("/identity/connect/"), "unlinked"),
    Exhibit("connect-no-code", handing_in("hello"), "unlinked"),
    Exhibit("disconnect", at("/identity/disconnect/"), "proven"),
    Exhibit("erase", at("/identity/erase/"), "proven", looks=EXTREMES),
    Exhibit("gate-nobody", at("/residents/"), looks=EXTREMES),
    Exhibit("gate-not-linked", at("/residents/"), "unlinked", looks=EXTREMES),
    Exhibit("gate-by-code", at("/residents/"), "by_code", looks=EXTREMES),
    Exhibit(
        "sign-in-by-code",
        at("/identity/login/?missing=age_over_18"),
        "by_code",
        looks=EXTREMES,
    ),
    Exhibit("gate-withdrawn", at("/residents/"), "withdrawn", looks=EXTREMES),
    Exhibit("gate-never-proven", at("/residents/"), "unverified", looks=EXTREMES),
    Exhibit("gate-not-confirmed", at(f"{LOGIN}age_over_18"), "child", looks=MAGNIFIED),
    Exhibit("gate-rejected", at("/residents/"), "rejected", looks=MAGNIFIED),
    Exhibit("gate-unverifiable", at("/residents/"), "unverifiable"),
    Exhibit("gate-run-out", at("/residents/"), "run_out"),
    Exhibit("gate-revoked", at("/residents/"), "revoked", looks=EXTREMES),
    Exhibit("gate-other-value", at("/residents/"), "abroad", looks=EXTREMES),
    Exhibit("error-restart", at("/identity/callback/?state=x&code=y")),
)
EXAMPLE_PAGES = (
    *PAGES,
    Exhibit("error-denied", coming_back(error="access_denied")),
    Exhibit("error-account-exists", coming_back(code="a-code")),
    Exhibit("home", at("/")),
    Exhibit("confirm", at("/leave/"), "proven"),
    Exhibit("home-signed-in", at("/"), "proven"),
    Exhibit("home-abroad", at("/"), "abroad", looks=EXTREMES),
    Exhibit("circles", at("/adults/"), "proven"),
    Exhibit("naira-circles", at("/residents/"), "proven", looks=EXTREMES),
    Exhibit("loans", at("/loans/"), "proven"),
    Exhibit("loans-closed", at("/loans/"), "abroad", looks=EXTREMES),
    Exhibit("password", at("/accounts/login/")),
)
# Another state of a page is the same page: in the bare frame each page is looked at once.
BARE_PAGES = (
    *(
        replace(exhibit, looks=EXTREMES)
        for exhibit in PAGES
        if exhibit.looks == EVERY_LOOK
    ),
    Exhibit("hop", held_hop),
    Exhibit("buttons", at("/")),
)
