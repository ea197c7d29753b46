"""What a person does: the cast, verification, claims and consents, and the pages of errors."""

import re
import sqlite3
from contextlib import closing

import pytest

from tests.sandbox.driver import (
    ADA,
    Person,
    Pkce,
    Visitor,
    callback_parameters,
    refusal,
    started,
)

CLAIMS = {"kyc_verified", "age_over_18", "country_resident", "unique_human"}
CASES = ("Ada", "Bruno", "Chidi", "Dayo", "Emeka", "Funmi", "ليلى", "Gozie")
BUTTON = re.compile(r'name="person" value="[^"]+">(.*?)</button>', re.DOTALL)
#: A number, and what verifying it says and leaves.
NUMBERS = [
    ("11111111111", "rejected", "name_mismatch", "The name on this BVN differs"),
    ("33333333333", "rejected", "not_found", "No record has this BVN"),
    ("00000000000", "unverified", "provider_unavailable", "Nothing has changed"),
    ("123", "rejected", "not_found", "No record has this BVN"),
    ("", "rejected", "not_found", "No record has this BVN"),
]


def test_the_sign_in_page_offers_the_whole_cast(sandbox):
    """Eight cases, each with a button and a password; nobody whom a test has made."""
    Person(sandbox)
    visitor = Visitor(sandbox)
    page = visitor.open("/account/sign-in")
    for button, name in zip(BUTTON.findall(page.text), CASES, strict=True):
        assert f"Continue as <bdi>{name}</bdi>" in button
    page = visitor.submit(page, email="ada@sandbox.example", password="sandbox-person")
    assert page.url.path == "/account/"
    other = Visitor(sandbox)
    page = other.submit(other.open("/account/sign-in"), "/account/continue", person=ADA)
    assert page.url.path == "/account/"


def test_wrong_password_is_refused(person):
    """The message does not tell which half was wrong; the right pair leads to no other site."""
    page = person.open("/account/sign-in?next=https://attacker.example/")
    for email in (person.account["email"], "nobody@sandbox.example"):
        refused = person.submit(page, email=email, password="wrong")
        assert "do not match an account" in refused.text
    refused = person.submit(page, "/account/continue", person=person.user_id)
    assert "That test person is gone" in refused.text
    assert person.open("/account/").url.path == "/account/sign-in"
    assert person.sign_in(page).url.path == "/account/"
    assert set(person.browser.cookies) <= {"sandbox_session", "sandbox_csrftoken"}


def test_a_number_that_verifies_issues_every_claim(sandbox, application):
    """The sandbox asks on the way from a sign-in to the consent; *Not now* skips it once."""
    person = Person(sandbox)
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    assert person.submit(page, skip="1").url.path == "/oauth2/auth"
    page = person.open(application.authorization_url(Pkce()))
    assert page.url.path == "/account/verify"
    page = person.submit(page, bvn="222 2222 2222")
    assert "Your identity is verified" in page.text
    assert person.shown()["kyc_status"] == "verified"
    assert person.active_claims() == CLAIMS
    assert page.url.path == "/oauth2/auth"
    assert "code" in callback_parameters(person.submit(page, allow="Approve"))


@pytest.mark.parametrize(("bvn", "status", "outcome", "words"), NUMBERS)
def test_a_number_that_does_not_verify_is_explained(
    sandbox, bvn, status, outcome, words
):
    """Only a rejection changes the status, and takes the claims of an earlier one back."""
    person = Person(sandbox)
    person.sign_in()
    page = person.submit(person.open("/account/verify"), bvn=bvn)
    assert words in page.text
    assert page.status_code == (503 if bvn == "00000000000" else 200)
    assert (person.shown()["kyc_status"], person.active_claims()) == (status, set())
    verified = Person(sandbox, verified=True)
    asked = verified.cause("verify", bvn=bvn)
    left = status if status == "rejected" else "verified"
    assert (asked["outcome"], asked["kyc_status"]) == (outcome, left)
    assert (verified.active_claims() == set()) is (left == "rejected")


def test_person_revokes_a_consent(application, person):
    """The application's tokens end. The account page also deletes the account, asked once."""
    tokens = person.tokens_for(application)
    page = person.sign_in()
    page = person.submit(page, f"/account/consents/{application.client_id}/revoke")
    assert "Access is revoked" in page.text
    assert person.read(tokens, "profile").status_code == 401
    assert application.refresh(tokens["refresh_token"]).status_code == 400
    tokens = person.tokens_for(application)
    page = person.submit(person.open("/account/delete"), "/account/delete", delete="1")
    assert "Your account is closed" in page.text
    assert person.read(tokens, "profile").status_code == 401
    assert "do not match an account" in person.sign_in(person.open("/account/")).text


def test_person_revokes_a_claim(person):
    """The account page gives it back, unless nothing proves it any more."""
    page, human = person.sign_in(), "/account/claims/unique_human"
    page = person.submit(page, f"{human}/revoke")
    assert person.active_claims() == CLAIMS - {"unique_human"}
    assert "issued again" in person.submit(page, f"{human}/issue").text
    person.cause("invalidate")
    refused = person.submit(page, f"{human}/issue")
    assert "Verify your identity first" in refused.text
    assert person.active_claims() == set()


def test_change_without_csrf_token_is_refused(person):
    """Every page that changes something is protected, and says so."""
    person.sign_in()
    for path in (
        "sign-in", "sign-out", "continue", "verify", "verify/address", "delete",
        "claims/age_over_18/revoke", "claims/age_over_18/issue", "consents/x/revoke",
    ):  # fmt: skip
        page = person.browser.post(f"/account/{path}")
        assert page.status_code == 403, path
        assert "This form cannot be accepted" in page.text


def test_pages_load_nothing_foreign_and_are_not_framed(sandbox):
    """Every page sends a strict policy, holds no inline style or script, and shows text as text."""
    page = sandbox.client.get("/account/sign-in")
    unknown = sandbox.client.get("/<script>alert(1)</script>")
    assert (unknown.status_code, "There is no such page" in unknown.text) == (404, True)
    for each in (page, unknown):
        assert "default-src 'none'" in each.headers["Content-Security-Policy"]
        assert each.headers["X-Frame-Options"] == "DENY"
        assert "<script" not in each.text
        assert "style=" not in each.text
    assert page.headers["Cache-Control"] == "no-store"
    assert sandbox.client.get("/static/sandbox/sandbox.css").status_code == 200
    icon = sandbox.client.get("/favicon.ico")
    assert (icon.status_code, icon.headers["Content-Type"]) == (200, "image/svg+xml")


@pytest.mark.integration
def test_an_internal_error_shows_no_traceback(tmp_path):
    """A person gets a page, a machine the envelope."""
    path = tmp_path / "broken.sqlite3"
    with started("--database", str(path)) as broken:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DROP TABLE sandbox_user")
            database.execute("DROP TABLE sandbox_accesstoken")
        page = broken.client.get("/account/sign-in")
        assert (page.status_code, "The sandbox has failed" in page.text) == (500, True)
        assert "Traceback" not in page.text
        bearer = {"Authorization": "Bearer x"}
        answer = broken.client.get("/api/v1/users/x/kyc", headers=bearer)
        assert refusal(answer) == (500, "INTERNAL_ERROR")
