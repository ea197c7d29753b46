"""Every page of ours: at every width, from right to left, without a mouse, and after a no."""

from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Page

from tests.browser.gallery import (
    BARE_PAGES,
    EVERY_LOOK,
    EXAMPLE_PAGES,
    EXTREMES,
    LOGIN,
    Exhibit,
    at,
    coming_back,
    handing_in,
    look_at,
)
from tests.browser.page_looks import (
    TEXT,
    Look,
    latin_words,
    looks_well,
    looks_well_on_paper,
    overflow,
    shoot,
    violations,
)
from tests.example_project.site import PATIENT, Site, running_site
from tests.fake_service import FakeService, html, refusal, serving

SEEN_IN_FULL = [exhibit for exhibit in EXAMPLE_PAGES if exhibit.looks == EVERY_LOOK]
RINGED = """() => {
  const held = document.activeElement, style = getComputedStyle(held);
  return [(held.textContent || held.value || '').trim(), style.outlineStyle !== 'none'];
}"""
#: Names, which are the same in every language.
NAMES = {
    "Ajo",
    "Circle",
    "Connect",
    "Verify",
    "Ltd",
    "Identity",
    "KYC",
    "Ada",
    "Obi",
    "Femi",
    "Mensah",
    "NG",
    "GH",
    "English",
    "français",
    "português",
    "Português",
    "Brasil",
    "español",
    "CNX-XXXX-XXXX",
    "default",
    "Kofi",
    "kofis-subject",
}
# 1280 by 1024 at 400 % (WCAG 1.4.10): as wide as a phone, and less high.
ZOOM = {"width": 320, "height": 256}
#: What has the name of the site or of the service in it: the header, titles, buttons.
RENAME = """name => {
  for (const part of document.querySelectorAll('.identity-header a, h1, h2, .identity-button'))
    (part.querySelector('span') || part).append(' ' + name);
}"""
IN_SIGHT = """() => {
  const held = document.activeElement, top = held.getBoundingClientRect().top;
  return [held.innerText, top >= 0 && top < innerHeight];
}"""


@pytest.mark.parametrize("exhibit", EXAMPLE_PAGES, ids=str)
def test_a_page_of_the_example_project(visit, example_site, exhibit):
    """At 320 and 1280 px, light and dark: nothing scrolls sideways, axe finds nothing."""
    look_at(visit, example_site, exhibit, "example")


@pytest.mark.parametrize("exhibit", BARE_PAGES, ids=str)
def test_a_page_as_it_comes(visit, bare_site, exhibit):
    """The package's pages on a site that adds nothing to them: the extremes of the same."""
    look_at(visit, bare_site, exhibit, "bare")


@pytest.mark.parametrize("path", ["login/", "callback/?state=x&error=access_denied"])
def test_a_form_of_the_sites_frame_works_on_our_pages(visit, example_site, path):
    """Django refuses a form without an origin, which a page without a referrer sends."""
    page = visit(example_site)
    page.goto(f"/identity/{path}")
    # As in Django's own example: without it the view leads back to the referrer.
    page.evaluate("document.querySelector('.circle-languages [name=next]').value = ''")
    page.select_option("#language", "es")
    with page.expect_navigation():
        page.locator(".circle-languages button").click()
    assert page.evaluate("document.documentElement.lang") == "es"
    if path == "login/":
        assert page.url.endswith("/identity/login/")


@pytest.mark.parametrize("exhibit", SEEN_IN_FULL, ids=str)
def test_from_right_to_left(visit, example_site, exhibit):
    """In Arabic: from right to left, nothing stays in English, it fits, and axe finds nothing."""
    page = visit(example_site, exhibit.person, locale="ar")
    exhibit.way(page)
    assert (
        page.evaluate("document.documentElement.dir + document.documentElement.lang")
        == "rtlar"
    )
    looks_well(page, f"rtl/{exhibit.name}", (Look(320), Look(1280)))
    assert latin_words(page) - NAMES == set()


@pytest.mark.parametrize(
    ("person", "path", "expected"),
    [
        (
            "",
            "/identity/login/",
            [
                "Skip to content",
                "Ajo Circle",
                "Circles",
                "Naira circles",
                "Loans",
                "Your details",
                "Continue with your identity service",
                "Sign in with a password",
            ],
        ),
        (
            "proven",
            "/identity/disconnect/",
            [
                "Skip to content",
                "Ajo Circle",
                "Circles",
                "Naira circles",
                "Loans",
                "Your details",
                "Erase my data",
                "Cancel",
            ],
        ),
    ],
    ids=["sign-in", "disconnect"],
)
def test_every_control_is_reached_in_order(visit, example_site, person, path, expected):
    """Tab goes through links and buttons in reading order, and each one shows that it has focus."""
    page = visit(example_site, person)
    page.goto(path)
    walked = []
    for _ in expected:
        page.keyboard.press("Tab")
        name, visible = page.evaluate(RINGED)
        assert visible, f"no focus ring on {name}"
        walked.append(name)
    assert walked == expected


def test_the_account_page_works_with_the_keyboard_alone(visit, example_site):
    """The skip link stands in sight and skips, what is held unfolds, a file is saved."""
    page = visit(example_site, "proven")
    page.goto("/identity/account/")
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


@pytest.mark.parametrize("path", ["/identity/account/", f"{LOGIN}age_over_18"])
def test_paper_gets_dark_text_in_the_dark_scheme_too(visit, example_site, path):
    page = visit(example_site, "child")
    page.goto(path)
    looks_well_on_paper(page, "button, nav, .identity-button")


def test_nothing_needs_java_script(visit, example_site):
    """Gate, renewal and the way out to the service, with scripts switched off."""
    page = visit(example_site, "run_out", java_script_enabled=False)
    page.goto("/residents/")
    assert page.get_by_text("Your proof ran out").is_visible()
    page.get_by_role("button", name="Check again with your identity service").click()
    assert "/oauth2/auth?" in page.url


def test_the_strict_policy_is_really_there(visit, example_site, windows):
    """An inline script is refused here, so a page that complains of nothing has none."""
    page = visit(example_site)
    page.goto("/")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))",
    )
    assert windows.complaints != []
    windows.complaints.clear()


def test_the_button_stands_alone(visit, bare_site):
    """Every size is tall enough to hit, and named."""
    page = visit(bare_site)
    page.goto("/")
    buttons = page.get_by_role("button", name="Continue with your identity service")
    heights = [button.bounding_box()["height"] for button in buttons.all()]
    assert len(heights) == 12
    assert min(heights) >= 36
    assert heights[0] < heights[1] < heights[2]


@pytest.mark.parametrize("locale", ["en", "ar"])
def test_a_name_without_a_space_is_broken(visit, bare_site, locale):
    """A site or a service may be called by a long domain, and texts may be twice as large."""
    page = visit(bare_site, "by_code", locale=locale)
    page.goto("/identity/account/")
    page.evaluate(
        RENAME,
        "identity-verification-service.customers.example".replace("-", ""),
    )
    for look in (Look(320), Look(320, text="200%"), Look(1280)):
        page.set_viewport_size({"width": look.width, "height": 800})
        page.evaluate(TEXT, look.text)
        shoot(page, f"long/{locale}-{look.width}-{look.text}")
        assert overflow(page) == [], look


def too_late(page: Page) -> None:
    """The page was open so long that its token is worth nothing now."""
    page.goto("/identity/connect/")
    page.context.clear_cookies(name="csrftoken")
    page.fill("[name=connect_code]", "CNX-AB12-CD34")
    with page.expect_navigation():
        page.press("[name=connect_code]", "Enter")


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
    visit,
    example_site,
    way,
    person,
    title,
):
    """The page after an error does not look like the page before it."""
    page = visit(example_site, person, viewport=ZOOM)
    way(page)
    text, in_sight = page.evaluate(IN_SIGHT)
    assert title in text
    assert in_sight
    is_calm = title == "You did not share anything"
    assert page.title().startswith("Error:") is not is_calm
    assert overflow(page) == []
    assert violations(page) == []


def test_a_field_tells_its_error(visit, example_site):
    """The field is empty again, and points to its hint and its error."""
    page = visit(example_site, "unlinked", viewport=ZOOM)
    handing_in("CNX-EF34")(page)
    code = page.locator("[name=connect_code]")
    assert code.input_value() == ""
    assert code.get_attribute("aria-invalid") == "true"
    for name in (code.get_attribute("aria-describedby") or "").split():
        assert page.locator(f"#{name}").inner_text()
    page.locator("[role=alert] a").first.click()
    assert page.evaluate("document.activeElement.name") == "connect_code"


KYC_URL = "https://identity.example/verify?for=ajo-circle"
fresh = count(1)


#: The page, the answer before it, who reads it, the code and the way on. The words of the other
#: errors are a test's of ``tests/views``: their page is one.
NOT_MET = refusal("POA_REQUIRED", "403 No", kyc_required=True, kyc_url=KYC_URL)
NOES = [
    (
        "connect",
        {"request": NOT_MET},
        "unlinked",
        "verification_policy_not_met",
        "address",
    ),
    (
        "connect",
        {"request": html("500 Oops")},
        "unlinked",
        "connect_outcome_unknown",
        "account",
    ),
    ("sign-in", {"token": html("503 No")}, "", "service_unavailable", "Try again"),
]
Answering = tuple[FakeService, Site]


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    """The service, which says what it is told to say, and its site."""
    folder = tmp_path_factory.mktemp("answering")
    with (
        serving(profile={"email": "new@example.org"}) as service,
        running_site(folder, service.settings(TIMEOUT=3), settings=PATIENT) as site,
    ):
        yield service, site


@pytest.mark.parametrize(("to", "answers", "person", "code", "way_on"), NOES)
def test_an_answer_that_is_no(visit, answering, to, answers, person, code, way_on):
    """Each has a page with the way on and the reference; after a code with its field too."""
    service, site = answering
    service.answers, service.subject = answers, "nobody-here-yet"
    way = handing_in(a_code()) if to == "connect" else coming_back(code="c")
    page = look_at(
        visit,
        site,
        Exhibit(f"{to}-{code}", way, person, EXTREMES),
        "answers",
    )
    assert way_on in page.locator("main").inner_text()
    assert page.locator("main code").all_inner_texts()[-1] == code


def test_a_code_that_verifies(visit, answering):
    """From the field to the account page, which says what a code brought and what it did not."""
    service, site = answering
    service.answers, service.subject = {}, "verified-by-code"
    exhibit = Exhibit("connect-verified", verified, "newcomer", EXTREMES)
    page = look_at(visit, site, exhibit, "answers")
    assert page.get_by_text("You were verified with a code").is_visible()
    assert page.get_by_role("link", name="Enter a new code").is_visible()
    button = "{} with your identity service".format
    assert page.get_by_role("button", name=button("Check again")).count() == 0
    page.get_by_role("button", name=button("Continue")).click()
    assert "/oauth2/auth?" in page.url


def a_code() -> str:
    """One that was never handed in."""
    return f"CNX-ANSW-{next(fresh):04d}"


def verified(page: Page) -> None:
    page.goto("/identity/connect/")
    page.fill("[name=connect_code]", a_code())
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Yes, this is me").click()
    page.wait_for_url("**/identity/account/")
