"""What the tests of the admin share: its addresses, ways to its pages, and how to look at them."""

from tests.browser.conftest import Visitor
from tests.browser.gallery import Exhibit
from tests.browser.looking import looks_well

LOOKS = ((320, "light"), (768, "light"), (1280, "dark"))
HERE = "/admin/django_identity"
IDENTITIES = f"{HERE}/linkedidentity/"
EVENTS = f"{HERE}/webhookevent/"
RECEIPTS = f"{HERE}/erasurereceipt/"
OVERVIEW = f"{HERE}/linkedidentity/overview/"
SHOP = f"{OVERVIEW}?of=shop"


def look(visitor: Visitor, name: str) -> None:
    """At 320, 768 and 1280 px: it fits, axe finds nothing, light and dark, the policy holds."""
    policy = [text for text in visitor.complaints if "Content Security Policy" in text]
    assert policy == []
    looks_well(visitor.page, f"admin/{name}", LOOKS, ours=False)
    # axe tries styles of its own, which the policy refuses: not the page's doing.
    visitor.complaints.clear()


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
