"""The test people whom every sandbox has, as the sign-in page offers them."""

import base64
import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.driver import (
    Application,
    Person,
    Pkce,
    Sandbox,
    Visitor,
    bearer,
    callback_parameters,
)

ADA = "00000000-0000-4000-8000-000000000001"
CASES = {
    "Ada": "verified, 18 or older, Nigeria",
    "Bruno": "verified, 18 or older, Portugal",
    "Chidi": "verified, not 18, Nigeria",
    "Dayo": "not verified yet, Nigeria",
    "Emeka": "rejected, Nigeria",
    "Funmi": "verified, 18 or older, Nigeria, no proof of address",
    "ليلى": "verified, 18 or older, Egypt, name in Arabic",
    "Gozie": "verified, 18 or older, Nigeria, credential valid for 2 minutes",
}
BUTTON = re.compile(r'name="person" value="([^"]+)">(.*?)</button>', re.DOTALL)


@pytest.fixture(scope="module")
def fresh() -> Iterator[Sandbox]:
    """A sandbox in which nobody has changed the cast."""
    with Sandbox() as sandbox:
        yield sandbox


def offered(visitor: Visitor) -> dict[str, str]:
    """What each button says -> whom it stands for."""
    page = visitor.open("/account/sign-in")
    return {
        " ".join(html.unescape(re.sub(r"<[^>]+>", "", inside)).split()): subject
        for subject, inside in BUTTON.findall(page.text)
    }


def test_every_case_is_a_button(fresh: Sandbox) -> None:
    """Eight people, each with the words of a case."""
    said = offered(Visitor(fresh))
    assert list(said) == [f"Continue as {name}: {case}" for name, case in CASES.items()]
    assert next(iter(said.values())) == ADA


def test_one_press_leads_to_the_consent_and_back(fresh: Sandbox) -> None:
    """Ada needs no password, and the application gets her claims."""
    visitor, application, pkce = Visitor(fresh), Application(fresh), Pkce()
    page = visitor.open(application.authorization_url(pkce))
    page = visitor.submit(page, "/account/continue", person=ADA)
    assert page.url.path == "/oauth2/auth"
    code = callback_parameters(visitor.submit(page, allow="Approve"))["code"]
    tokens = application.redeem(code, pkce).json()
    answer = fresh.client.get(f"/api/v1/users/{ADA}/claims", headers=bearer(tokens)).json()
    types = {each["claim_type"] for each in answer["data"]["claims"]}
    assert types == {"kyc_verified", "age_over_18", "country_resident", "unique_human"}


def test_the_short_lived_credential(fresh: Sandbox) -> None:
    """It expires two minutes after its issue."""
    gozie = next(who for said, who in offered(Visitor(fresh)).items() if "Gozie" in said)
    assert 110 <= expiry(fresh, gozie) - time.time() <= 121


def test_a_credential_of_any_length(sandbox: Sandbox) -> None:
    """A test says how long."""
    person = Person(sandbox, verified=True, credential_seconds=7)
    assert expiry(sandbox, person.user_id) - time.time() <= 8


def expiry(sandbox: Sandbox, user_id: str) -> float:
    """When the credential of ``user_id`` expires."""
    application, pkce = Application(sandbox), Pkce()
    approved = sandbox.control(
        "POST", "authorizations", url=application.authorization_url(pkce), user_id=user_id
    )
    code = approved["callback"].split("code=")[1].split("&")[0]
    tokens = application.redeem(code, pkce).json()
    answer = sandbox.client.get("/api/v1/users/me/claims", headers=bearer(tokens)).json()
    payload = answer["data"]["credential"].split("~")[0].split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(payload + "=="))["exp"])


def test_the_cast_has_a_password(fresh: Sandbox) -> None:
    """For those who want one, and for Connect codes, where the page says it."""
    visitor = Visitor(fresh)
    page = visitor.open("/account/sign-in")
    assert "sandbox-person" in page.text
    page = visitor.submit(page, email="ada@sandbox.example", password="sandbox-person")
    assert page.url.path == "/account/"
    page = visitor.open("/account/connect-codes/new")
    assert "sandbox-person" in page.text
    assert "CNX-" in visitor.submit(page, password="sandbox-person").text


def test_nobody_else_is_a_button(sandbox: Sandbox, person: Person) -> None:
    """Who was made by the control API or in the portal needs the password."""
    visitor = Visitor(sandbox)
    page = visitor.open("/account/sign-in")
    assert person.user_id not in page.text
    page = visitor.submit(page, "/account/continue", person=person.user_id)
    assert page.url.path == "/account/sign-in"
    assert "That test person is gone" in page.text
    assert visitor.open("/account/").url.path == "/account/sign-in"


def test_no_foreign_page_signs_anybody_in(sandbox: Sandbox) -> None:
    """A form of another site is refused, and leads nowhere else."""
    visitor = Visitor(sandbox)
    for path in ("continue", "new"):
        assert visitor.browser.post(f"/account/{path}", data={"person": ADA}).status_code == 403
    page = visitor.open("/account/sign-in?next=https://attacker.example/")
    assert visitor.submit(page, "/account/continue", person=ADA).url.path == "/account/"


MADE = {
    "first_name": "Zed",
    "last_name": "Young",
    "country": "FR",
    "age": "40",
    "kyc_status": "verified",
    "claims": "unique_human",
    "credential_seconds": "600",
    "environment": "test",
}


def test_somebody_else_is_made(sandbox: Sandbox) -> None:
    """With the claims that were chosen; the sign-in page offers them from then on."""
    visitor, application, pkce = Visitor(sandbox), Application(sandbox), Pkce()
    page = visitor.open(application.authorization_url(pkce))
    address = html.unescape(re.search(r'href="(/account/new[^"]*)"', page.text)[1])
    page = visitor.submit(visitor.open(address), "/account/new", **MADE)
    assert page.url.path == "/oauth2/auth"
    said = "Continue as Zed: verified, age not shown, France, no proof of address"
    subject = offered(Visitor(sandbox))[f"{said}, credential valid for 10 minutes"]
    assert list(sandbox.control("GET", f"users/{subject}")["claims"]) == ["unique_human"]
    sandbox.control("POST", f"users/{subject}/deletion")
    assert subject not in offered(Visitor(sandbox)).values()


@pytest.mark.parametrize(
    ("member", "value"), [("age", "-1"), ("country", "XX"), ("credential_seconds", "0")]
)
def test_nobody_impossible_is_made(sandbox: Sandbox, member: str, value: str) -> None:
    """The form says what is wrong."""
    visitor = Visitor(sandbox)
    page = visitor.submit(visitor.open("/account/new"), "/account/new", **MADE | {member: value})
    assert page.url.path == "/account/new"
    assert 'class="error"' in page.text


@pytest.mark.processes
def test_a_kept_cast_stays_as_it_is(tmp_path: Path) -> None:
    """Who was deleted does not come back with the next start."""
    database = ("--database", str(tmp_path / "kept.sqlite3"))
    with Sandbox(*database) as sandbox:
        sandbox.control("POST", f"users/{ADA}/deletion")
    with Sandbox(*database) as sandbox:
        assert len(offered(Visitor(sandbox))) == len(CASES) - 1
