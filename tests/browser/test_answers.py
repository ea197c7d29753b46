"""What a person reads when the service or the site says no: after a sign-in, and after a code."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.gallery import EXTREMES, Exhibit, coming_back, handing_in, look_at
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
    person: str = "unlinked"
    subject: str = "nobody-here-yet"

    def __str__(self) -> str:
        return self.code


NOT_MET = refusal("POA_REQUIRED", "403 No", kyc_required=True, kyc_url=KYC_URL)

AFTER_A_CODE = (
    Said("invalid_connect_code", "Make a new one", {"request": refusal("INVALID_CONNECT_CODE")}),
    Said("connect_code_required", "tell the people", {"request": refusal("CONNECT_CODE_REQUIRED")}),
    Said("environment_mismatch", "tell the people",
         {"request": refusal("ENVIRONMENT_MISMATCH", "403 No")}),
    Said("verification_policy_not_met", "Add proof of address", {"request": NOT_MET}),
    Said("client_rejected", "tell the people", {"request": refusal("UNAUTHORIZED", "401 No")}),
    Said("service_refusal", "Make a new code", {"request": refusal("WHATEVER", "418 No")}),
    Said("rate_limited", "Make a new code", {"request": http(b"", status="429 Slow")}),
    Said("connect_outcome_unknown", "Look at your account", {"request": html("500 Oops")}),
    Said("malformed_answer", "Make a new code", {"request": {"success": True, "data": {}}}),
    Said("subject_taken", "tell the people", subject=ADAS_SUBJECT),
    Said("user_holds_another", "Look at your account", person="abroad"),
    Said("link_not_allowed", "Connect your identity service", person="operator"),
)  # fmt: skip
AFTER_A_SIGN_IN = (
    Said("service_unavailable", "Try again", {"token": html("503 No")}, person=""),
    Said("subject_taken", "Back to Ajo Circle", subject=ADAS_SUBJECT),
    Said("subject_changed", "Start again", person="abroad"),
    Said(
        "linked_by_code", "Sign in with a password", person="", subject="kofis-subject"
    ),
)
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


@pytest.mark.parametrize(
    ("to", "said"),
    [*(("connect", said) for said in AFTER_A_CODE),
     *(("sign-in", said) for said in AFTER_A_SIGN_IN)],
    ids=str,
)  # fmt: skip
def test_an_answer_that_is_no(visit, answering, to, said):
    """Each has a page with the way on and the reference; after a code with its field too."""
    service, site = answering
    service.answers, service.subject = said.answers, said.subject
    way = handing_in(a_code()) if to == "connect" else coming_back(code="c")
    exhibit = Exhibit(f"{to}-{said}", way, said.person, EXTREMES)
    page = look_at(visit, site, exhibit, "answers")
    assert said.way_on in page.locator("main").inner_text()
    assert page.locator("main code").all_inner_texts()[-1] == said.code


def test_a_code_that_was_used(visit, answering):
    """The second person who brings it is told so; the first sees what it brought."""
    service, site = answering
    service.answers = {"request": refusal("INVALID_CONNECT_CODE")}
    used = handing_in(a_code())
    used(visit(site, "unlinked"))
    page = look_at(
        visit, site, Exhibit("connect-used", used, "withdrawn", EXTREMES), "answers"
    )
    assert page.get_by_text("Look at your account").is_visible()


def test_a_code_that_verifies(visit, answering):
    """From the field to the account page, which says what a code brought and what it did not."""
    service, site = answering
    service.answers, service.subject = {}, "verified-by-code"
    exhibit = Exhibit("connect-verified", verified, "newcomer", EXTREMES)
    page = look_at(visit, site, exhibit, "answers")
    assert page.get_by_text("You were verified with a code").is_visible()
    assert page.get_by_role("link", name="Enter a new code").is_visible()
    assert (
        page.get_by_role(
            "button", name="Check again with your identity service"
        ).count()
        == 0
    )
    page.get_by_role("button", name="Continue with your identity service").click()
    assert "/oauth2/auth?" in page.url


def test_the_page_after_disconnecting_looks_well(visit, answering):
    """The last page of a person whose identity is no longer linked."""
    exhibit = Exhibit("disconnected", disconnected, "by_code", EXTREMES)
    look_at(visit, answering[1], exhibit, "answers")


def a_code() -> str:
    """One that was never handed in."""
    return f"CNX-ANSW-{next(fresh):04d}"


def verified(page: Page) -> None:
    page.goto("/identity/connect/")
    page.fill("[name=connect_code]", a_code())
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Yes, this is me").click()
    page.wait_for_url("**/identity/account/")


def disconnected(page: Page) -> None:
    page.goto("/identity/disconnect/")
    page.locator("main button").click()
    page.get_by_role("status").wait_for()
