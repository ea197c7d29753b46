"""Where the focus is after an error, on a phone and at 400 % zoom, and what stands in sight."""

import pytest

from tests.browser.conftest import Visit, Visitor
from tests.browser.gallery import Way, at, coming_back, handing_in
from tests.browser.looking import overflow, violations
from tests.example_project.site import Site

# 1280 by 1024 at 400 % is a window of 320 by 256 (WCAG 1.4.10).
WINDOWS = {"phone": {"width": 320, "height": 640}, "zoom": {"width": 320, "height": 256}}
FOCUSED = """() => {
  const held = document.activeElement, top = held.getBoundingClientRect().top;
  return [held.innerText, top >= 0 && top < innerHeight];
}"""


def too_late(visitor: Visitor) -> None:
    """The page was open so long that its token is worth nothing now."""
    visitor.go("/identity/connect/")
    visitor.context.clear_cookies(name="csrftoken")
    visitor.page.fill("[name=connect_code]", "CNX-AB12-CD34")
    visitor.page.locator("[name=connect_code]").press("Enter")
    visitor.page.wait_for_url("**/connect/")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("way", "person", "title"),
    [
        (handing_in("hello"), "unlinked", "Your code was not accepted"),
        (at("/identity/callback/?state=x&code=y"), "", "We could not sign you in"),
        (coming_back(error="server_error"), "", "We could not sign you in"),
        (coming_back(error="access_denied"), "", "You did not share anything"),
        (coming_back(code="a-code"), "", "You have an account here"),
        (too_late, "unlinked", "This page was open too long"),
    ],
    ids=["code", "callback", "refused", "denied", "account-exists", "too-late"],
)
def test_the_error_is_in_sight_and_has_the_focus(
    visit: Visit, example_site: Site, way: Way, person: str, title: str, window: str
) -> None:
    """The page after an error does not look like the page before it."""
    visitor = visit(example_site, person=person, viewport=WINDOWS[window])
    way(visitor)
    text, in_sight = visitor.page.evaluate(FOCUSED)
    assert title in text
    assert in_sight
    is_calm = title == "You did not share anything"
    assert visitor.page.title().startswith("Error:") is not is_calm
    assert overflow(visitor.page) == []
    assert violations(visitor.page) == []


def test_a_field_tells_its_error(visit: Visit, example_site: Site) -> None:
    """The field is empty again, and points to its hint and its error."""
    visitor = visit(example_site, person="unlinked", viewport=WINDOWS["phone"])
    handing_in("CNX-EF34")(visitor)
    code = visitor.page.locator("[name=connect_code]")
    assert code.input_value() == ""
    assert code.get_attribute("aria-invalid") == "true"
    for name in (code.get_attribute("aria-describedby") or "").split():
        assert visitor.page.locator(f"#{name}").inner_text()
    visitor.page.locator("[role=alert] a").first.click()
    assert visitor.page.evaluate("document.activeElement.name") == "connect_code"
