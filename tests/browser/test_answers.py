"""What a person reads when the service or the site says no: after a sign-in, and after a code."""

from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Page

from tests.browser.gallery import EXTREMES, Exhibit, coming_back, handing_in, look_at
from tests.example_project.site import PATIENT, Site, running_site
from tests.fake_service import FakeService, html, refusal, serving

KYC_URL = "https://identity.example/verify?for=ajo-circle"
fresh = count(1)


#: The page, the answer before it, who reads it, the code and the way on. The words of the other
#: errors are a test's of ``tests/views``: their page is one.
NOT_MET = refusal("POA_REQUIRED", "403 No", kyc_required=True, kyc_url=KYC_URL)
NOES = [
    ("connect", {"request": NOT_MET}, "unlinked", "verification_policy_not_met", "address"),
    ("connect", {"request": html("500 Oops")}, "unlinked", "connect_outcome_unknown", "account"),
    ("sign-in", {"token": html("503 No")}, "", "service_unavailable", "Try again"),
]  # fmt: skip
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
        visit, site, Exhibit(f"{to}-{code}", way, person, EXTREMES), "answers"
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
