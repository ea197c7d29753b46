"""What the tests of the admin share: its addresses, ways to its pages, and how to look at them."""

from pathlib import Path

from tests.browser.conftest import Visitor
from tests.browser.gallery import Exhibit
from tests.browser.looking import overflow, shoot, violations

WIDTHS = (320, 768, 1280)
SCHEMES = ("light", "dark")
DOCS = Path(__file__).parents[2] / "docs" / "admin.md"
HERE = "/admin/django_identity"
IDENTITIES = f"{HERE}/linkedidentity/"
EVENTS = f"{HERE}/webhookevent/"
RECEIPTS = f"{HERE}/erasurereceipt/"
OVERVIEW = f"{HERE}/linkedidentity/overview/"
SHOP = f"{OVERVIEW}?of=shop"


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
        visitor.page.wait_for_url("**/change/**")

    return Exhibit(f"identity-{username}", way)


def the_first(path: str, name: str) -> Exhibit:
    def way(visitor: Visitor) -> None:
        visitor.go(path)
        visitor.page.locator("#result_list tbody th a").first.click()
        visitor.page.wait_for_url("**/change/**")

    return Exhibit(name, way)


def ask(visitor: Visitor, username: str, button: str) -> None:
    """From the person's page to the question that an action asks."""
    of(username).way(visitor)
    visitor.page.get_by_role("button", name=button).click()
