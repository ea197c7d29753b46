"""Without a mouse, without JavaScript, from right to left, and under a strict policy."""

import pytest

from tests.browser.conftest import Visit
from tests.browser.gallery import EVERY_LOOK, EXAMPLE_PAGES, Exhibit
from tests.browser.looking import latin_words, looks_well
from tests.example_project.site import Site

SEEN_IN_FULL = [exhibit for exhibit in EXAMPLE_PAGES if exhibit.looks == EVERY_LOOK]
FOCUSED = """() => {
  const held = document.activeElement, style = getComputedStyle(held);
  return [(held.textContent || held.value || '').trim(), style.outlineStyle !== 'none'];
}"""
#: Names, which are the same in every language.
NAMES = {"Ajo", "Circle", "Connect", "Verify", "Ltd", "Identity", "KYC", "Ada", "Obi", "Femi",
         "Mensah", "NG", "GH", "English", "français", "português", "Português", "Brasil",
         "español", "CNX-XXXX-XXXX", "default", "Kofi",
         "kofis-subject"}  # fmt: skip


@pytest.mark.parametrize(
    ("person", "path", "expected"),
    [
        ("", "/identity/login/", ["Skip to content", "Ajo Circle", "Circles", "Naira circles",
                                  "Loans", "Your details", "Continue with your identity service",
                                  "Sign in with a password"]),
        ("proven", "/identity/disconnect/", ["Skip to content", "Ajo Circle", "Circles",
                                             "Naira circles", "Loans", "Your details",
                                             "Erase my data", "Cancel"]),
    ],
    ids=["sign-in", "disconnect"],
)  # fmt: skip
def test_every_control_is_reached_in_order(
    visit: Visit, example_site: Site, person: str, path: str, expected: list[str]
) -> None:
    """Tab goes through links and buttons in reading order, and each one shows that it has focus."""
    visitor = visit(example_site, person=person)
    visitor.go(path)
    walked = []
    for _ in expected:
        visitor.page.keyboard.press("Tab")
        name, visible = visitor.page.evaluate(FOCUSED)
        assert visible, f"no focus ring on {name}"
        walked.append(name)
    assert walked == expected


def test_keys_alone_suffice(visit: Visit, example_site: Site) -> None:
    """The skip link stands in sight and skips, what is held unfolds, a file is saved."""
    visitor = visit(example_site, person="proven")
    page = visitor.page
    visitor.go("/identity/account/")
    page.keyboard.press("Tab")
    assert page.locator(".identity-skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    claims = page.locator(".identity-kind").nth(1)
    for folded in (page.locator(".identity-held"), claims):
        folded.locator("summary").first.focus()
        page.keyboard.press("Enter")
    assert claims.get_by_text("Valid until").first.is_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download my data").press("Enter")
    assert saved.value.suggested_filename == "my-identity.json"


def test_nothing_needs_java_script(visit: Visit, example_site: Site) -> None:
    """Gate, renewal and the way out to the service, with scripts switched off."""
    visitor = visit(example_site, person="run_out", java_script_enabled=False)
    visitor.go("/residents/")
    assert visitor.page.get_by_text("Your proof ran out").is_visible()
    visitor.page.get_by_role("button", name="Check again with your identity service").click()
    assert "/oauth2/auth?" in visitor.page.url


@pytest.mark.parametrize("exhibit", SEEN_IN_FULL, ids=str)
def test_from_right_to_left(visit: Visit, example_site: Site, exhibit: Exhibit) -> None:
    """In Arabic: from right to left, nothing stays in English, it fits, and axe finds nothing."""
    visitor = visit(example_site, person=exhibit.person, locale="ar")
    exhibit.way(visitor)
    assert visitor.page.evaluate(
        "document.documentElement.dir + document.documentElement.lang"
    ) == ("rtlar")
    looks_well(visitor.page, f"rtl/{exhibit.name}", ((320, "light"), (1280, "light")))
    assert latin_words(visitor.page) - NAMES == set()


def test_the_strict_policy_is_really_there(visit: Visit, example_site: Site) -> None:
    """An inline script is refused here, so a page that complains of nothing has none."""
    visitor = visit(example_site)
    visitor.go("/")
    visitor.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"
    )
    assert any("Content Security Policy" in text for text in visitor.complaints)


def test_the_button_stands_alone(visit: Visit, bare_site: Site) -> None:
    """Every size is tall enough to hit, and named."""
    visitor = visit(bare_site)
    visitor.go("/")
    buttons = visitor.page.get_by_role("button", name="Continue with your identity service")
    heights = [button.bounding_box()["height"] for button in buttons.all()]
    assert len(heights) == 12
    assert min(heights) >= 36
    assert heights[0] < heights[1] < heights[2]
