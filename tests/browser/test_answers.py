"""What a person reads when the service or the site says no: after a sign-in, and after a code."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.gallery import EXTREMES, Exhibit, Way, coming_back, handing_in, look_at
from tests.example_project.site import PATIENT, Site, running_site
from tests.fake_service import FakeService, html, http, refusal, serving

KYC_URL = "https://identity.example/verify?for=ajo-circle"
ADAS_SUBJECT = "7d1f0c9e-0001-4a57-9c57-0c6bd37f2b11"
fresh = count(1)


@dataclass(frozen=True)
class Said:
    """An answer of the service, and what the page that follows says: a code and a way on."""

    code: str
    way_on: str
    answers: dict[str, Any] = field(default_factory=dict)
    person: str = ""
    subject: str = "nobody-here-yet"
    path: str = ""

    def __str__(self) -> str:
        return self.code


NOT_MET = refusal("POA_REQUIRED", "403 No", kyc_required=True, kyc_url=KYC_URL)

AFTER_A_CODE = (
    Said("invalid_connect_code", "Make a new code", {"request": refusal("INVALID_CONNECT_CODE")}),
    Said("connect_code_required", "tell the people", {"request": refusal("CONNECT_CODE_REQUIRED")}),
    Said("environment_mismatch", "tell the people",
         {"request": refusal("ENVIRONMENT_MISMATCH", "403 No")}),
    Said("verification_policy_not_met", "Get verified", {"request": NOT_MET}),
    Said("client_rejected", "tell the people", {"request": refusal("UNAUTHORIZED", "401 No")}),
    Said("service_refusal", "Make a new code", {"request": refusal("WHATEVER", "418 No")}),
    Said("rate_limited", "Make a new code", {"request": http(b"", status="429 Slow")}),
    Said("connect_outcome_unknown", "Look at your account", {"request": html("500 Oops")}),
    Said("malformed_answer", "Make a new code", {"request": {"success": True, "data": {}}}),
    Said("subject_taken", "tell the people", subject=ADAS_SUBJECT),
    Said("user_holds_another", "Look at your account", person="abroad"),
    Said("link_not_allowed", "Connect your identity service", person="operator"),
    Said("service_unavailable", "your code was not sent", path="/identity/connect/away/"),
)  # fmt: skip
AFTER_A_SIGN_IN = (
    Said("service_unavailable", "Try again", {"token": html("503 No")}),
    Said("subject_taken", "Back to Ajo Circle", person="unlinked", subject=ADAS_SUBJECT),
    Said("subject_changed", "Start again", person="abroad"),
    Said("linked_by_code", "Sign in with a password", subject="kofis-subject"),
)


@pytest.fixture(scope="module")
def answering() -> Iterator[FakeService]:
    with serving(profile={"email": "new@example.org"}) as running:
        yield running


@pytest.fixture(scope="module")
def answering_site(
    answering: FakeService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("answering")
    with running_site(folder, answering.settings(TIMEOUT=3), settings=PATIENT) as site:
        yield site


@pytest.fixture
def speaking(answering: FakeService) -> Iterator[FakeService]:
    yield answering
    answering.answers.clear()


def hears(visit: Visit, site: Site, speaking: FakeService, exhibit: Exhibit, said: Said) -> None:
    """Let the service say it, and look at the page of the person who hears it."""
    speaking.answers.update(said.answers)
    speaking.subject = said.subject
    page = look_at(visit, site, exhibit, "answers")
    assert said.way_on in page.locator("main").inner_text()
    assert page.locator("main code").all_inner_texts()[-1] == said.code


@pytest.mark.parametrize("said", AFTER_A_CODE, ids=str)
def test_a_code_that_is_answered_no(
    visit: Visit, answering_site: Site, speaking: FakeService, said: Said
) -> None:
    """Each answer of Connect has a page with the way on, the field, and the reference."""
    way = handing_in(a_code(), path=said.path or "/identity/connect/")
    exhibit = Exhibit(f"connect-{said}", way, said.person or "unlinked", EXTREMES)
    hears(visit, answering_site, speaking, exhibit, said)


@pytest.mark.parametrize("said", AFTER_A_SIGN_IN, ids=str)
def test_a_sign_in_that_is_answered_no(
    visit: Visit, answering_site: Site, speaking: FakeService, said: Said
) -> None:
    """Each kind of failure has a page with one way on, and the reference."""
    exhibit = Exhibit(f"sign-in-{said}", coming_back(code="c"), said.person, EXTREMES)
    hears(visit, answering_site, speaking, exhibit, said)


def test_a_code_that_was_used(visit: Visit, answering_site: Site, speaking: FakeService) -> None:
    """The second person who brings it is told so; the first sees what it brought."""
    speaking.subject, code = "kofi-again", a_code()
    speaking.answers["request"] = refusal("INVALID_CONNECT_CODE")
    handing_in(code)(visit(answering_site, "unlinked"))
    exhibit = Exhibit("connect-used", handing_in(code), "withdrawn", EXTREMES)
    page = look_at(visit, answering_site, exhibit, "answers")
    assert page.get_by_text("Look at your account").is_visible()


def test_a_code_that_verifies(visit: Visit, answering_site: Site, speaking: FakeService) -> None:
    """From the field to the account page, which says what a code brought and what it did not."""
    speaking.subject = "verified-by-code"
    exhibit = Exhibit("connect-verified", verified(a_code()), "newcomer", EXTREMES)
    page = look_at(visit, answering_site, exhibit, "answers")
    assert page.get_by_text("You were verified with a code").is_visible()
    assert page.get_by_role("link", name="Enter a new code").is_visible()
    assert page.get_by_role("button", name="Check again with your identity service").count() == 0
    page.get_by_role("button", name="Continue with your identity service").click()
    assert "/oauth2/auth?" in page.url


def test_after_disconnecting(visit: Visit, answering_site: Site) -> None:
    """The last page of a person whose identity is no longer linked."""
    exhibit = Exhibit("disconnected", disconnected, "unlinked", EXTREMES)
    look_at(visit, answering_site, exhibit, "answers")


def a_code() -> str:
    """One that was never handed in."""
    return f"CNX-ANSW-{next(fresh):04d}"


def verified(code: str) -> Way:
    def way(page: Page) -> None:
        page.goto("/identity/connect/")
        page.fill("[name=connect_code]", code)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Yes, this is me").click()
        page.wait_for_url("**/identity/account/")

    return way


def disconnected(page: Page) -> None:
    page.goto("/identity/disconnect/")
    page.locator("main button").click()
    page.get_by_role("status").wait_for()
