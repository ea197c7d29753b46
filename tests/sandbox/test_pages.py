"""What a person does: verification, claims and consents on the account page."""

import httpx
import pytest

from tests.sandbox.driver import (
    Application,
    Person,
    Pkce,
    Sandbox,
    bearer,
    callback_parameters,
)
from tests.sandbox.receiver import Receiver


def state_of(sandbox: Sandbox, person: Person) -> tuple[str, set[str]]:
    account = sandbox.control("GET", f"users/{person.user_id}")
    return account["kyc_status"], {
        name for name, claim in account["claims"].items() if not claim["revoked"]
    }


@pytest.mark.parametrize(
    ("bvn", "status", "words"),
    [
        ("11111111111", "rejected", "name does not match"),
        ("33333333333", "rejected", "not found"),
        ("12345678901", "rejected", "not found"),
        ("00000000000", "unverified", "try again"),
        ("123", "unverified", "exactly 11 digits"),
        ("", "unverified", "required"),
    ],
)
def test_number_that_does_not_verify(sandbox: Sandbox, bvn: str, status: str, words: str) -> None:
    """Each outcome is told, and only a rejection changes the status."""
    person = Person(sandbox)
    person.sign_in()
    page = person.submit(person.open("/account/verify"), bvn=bvn)
    assert words in page.text
    assert page.status_code == (503 if bvn == "00000000000" else 200)
    assert state_of(sandbox, person) == (status, set())


def test_number_that_verifies(sandbox: Sandbox) -> None:
    """The good number issues all four claims."""
    person = Person(sandbox)
    person.sign_in()
    page = person.submit(person.open("/account/verify"), bvn="222 2222 2222")
    assert "Your identity is verified" in page.text
    status, claims = state_of(sandbox, person)
    assert status == "verified"
    assert claims == {"kyc_verified", "age_over_18", "country_resident", "unique_human"}


def test_rejection_invalidates_an_earlier_verification(sandbox: Sandbox, person: Person) -> None:
    """A verified person who is rejected loses the claims."""
    sandbox.control("POST", f"users/{person.user_id}/verify", bvn="11111111111")
    assert state_of(sandbox, person) == ("rejected", set())


def test_unverified_person_verifies_on_the_way(sandbox: Sandbox, application: Application) -> None:
    """Sign-in leads to verification, and verification to the consent."""
    person = Person(sandbox)
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    assert page.url.path == "/account/verify"
    page = person.submit(page, bvn="22222222222")
    assert page.url.path == "/oauth2/auth"
    assert "code" in callback_parameters(person.submit(page, allow="Approve"))


def test_skipping_holds_for_one_request_only(sandbox: Sandbox, application: Application) -> None:
    """*Not now* leads to the consent; the next request asks again."""
    person = Person(sandbox)
    person.tokens_for(application)
    assert person.open(application.authorization_url(Pkce())).url.path == "/account/verify"


def test_wrong_password_is_refused(sandbox: Sandbox, person: Person) -> None:
    """The message does not tell which half was wrong."""
    page = person.open("/account/sign-in")
    wrong = person.submit(page, email=person.account["email"], password="wrong")
    unknown = person.submit(page, email="nobody@sandbox.example", password="wrong")
    for refused in (wrong, unknown):
        assert "do not match an account" in refused.text
    assert person.open("/account/").url.path == "/account/sign-in"


def test_sign_in_leads_nowhere_else(sandbox: Sandbox, person: Person) -> None:
    """A foreign ``next`` address is ignored."""
    page = person.sign_in(person.open("/account/sign-in?next=https://attacker.example/"))
    assert page.url.path == "/account/"


def test_person_revokes_a_consent(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Revoking on the account page voids the application's tokens."""
    tokens = person.tokens_for(application)
    account = person.open("/account/")
    assert "Example shop" in account.text
    page = person.submit(account, f"/account/consents/{application.client_id}/revoke")
    assert "Access is revoked" in page.text
    profile = sandbox.client.get("/api/v1/users/me/profile", headers=bearer(tokens))
    assert profile.status_code == 401
    assert application.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert "No application can see" in page.text


def test_person_revokes_a_claim(sandbox: Sandbox, person: Person) -> None:
    """Revoking on the account page takes one claim."""
    person.sign_in()
    page = person.submit(person.open("/account/"), "/account/claims/unique_human/revoke")
    assert "The claim is revoked" in page.text
    assert "unique_human" not in state_of(sandbox, person)[1]


def test_person_has_a_claim_issued_again(sandbox: Sandbox, person: Person) -> None:
    """A revoked claim comes back on the account page."""
    person.sign_in()
    person.submit(person.open("/account/"), "/account/claims/unique_human/revoke")
    page = person.submit(person.open("/account/"), "/account/claims/unique_human/issue")
    assert "issued again" in page.text
    assert "unique_human" in state_of(sandbox, person)[1]


def test_claim_of_an_unverified_person_is_not_issued(sandbox: Sandbox, person: Person) -> None:
    """Without a verification nothing proves a claim."""
    person.sign_in()
    page = person.submit(person.open("/account/"), "/account/claims/unique_human/revoke")
    person.cause("invalidate")
    page = person.submit(page, "/account/claims/unique_human/issue")
    assert "Verify your identity first" in page.text
    assert state_of(sandbox, person) == ("unverified", set())


def test_person_asks_for_deletion(
    sandbox: Sandbox, hearing: Application, receiver: Receiver, person: Person
) -> None:
    """After one question the account is closed, nothing can be read, and everyone is told."""
    tokens = person.tokens_for(hearing)
    page = person.open("/account/delete")
    assert "Example shop" in page.text
    page = person.submit(page, "/account/delete", delete="1")
    assert "Your account is closed" in page.text
    receiver.wait_for(2)
    assert receiver.types == ["consent.granted", "data.deletion_requested"]
    profile = sandbox.client.get("/api/v1/users/me/profile", headers=bearer(tokens))
    assert profile.status_code == 401
    assert "do not match an account" in person.sign_in(person.open("/account/")).text


def test_session_elsewhere_ends_with_the_account(sandbox: Sandbox, person: Person) -> None:
    """Another browser of the person is signed out by the deletion as well."""
    person.sign_in()
    person.cause("deletion")
    assert person.open("/account/").url.path == "/account/sign-in"


def test_consent_given_again_works_again(application: Application, person: Person) -> None:
    """A revoked consent can be granted anew."""
    tokens = person.tokens_for(application)
    sandbox = application.sandbox
    sandbox.control("POST", f"users/{person.user_id}/consents/{application.client_id}/revoke")
    assert application.refresh(tokens["refresh_token"]).status_code == 400
    again = person.tokens_for(application)
    assert sandbox.client.get("/api/v1/users/me/kyc", headers=bearer(again)).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "sign-in",
        "sign-out",
        "switch",
        "verify",
        "claims/age_over_18/revoke",
        "claims/age_over_18/issue",
        "consents/x/revoke",
        "delete",
    ],
)
def test_change_without_csrf_token_is_refused(person: Person, path: str) -> None:
    """Every page that changes something is protected."""
    person.sign_in()
    assert person.browser.post(f"/account/{path}").status_code == 403


def test_consent_without_csrf_token_is_refused(application: Application, person: Person) -> None:
    """Approval cannot be forged from another site."""
    url = application.authorization_url(Pkce())
    person.sign_in(person.open(url))
    assert person.browser.post(url, data={"allow": "Approve"}).status_code == 403


def test_pages_load_nothing_foreign_and_are_not_framed(sandbox: Sandbox) -> None:
    """Every page sends a strict policy and holds no inline style or script."""
    page = httpx.get(f"{sandbox.origin}/account/sign-in")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cache-Control"] == "no-store"
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert httpx.get(f"{sandbox.origin}/static/sandbox/sandbox.css").status_code == 200
