"""Wrong addresses, wrong methods and mistakes of the sandbox have pages of their own."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.sandbox.driver import Person, Sandbox, Visitor


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/oauth2/authorize", "/oauth2/auth"),
        ("/account", "/account/"),
        ("/.well-known/jwks", "/.well-known/jwks.json"),
        ("/nothing-of-the-kind", ""),
    ],
)
def test_an_unknown_address(sandbox: Sandbox, path: str, near: str) -> None:
    """The page says so, and names the address that looks like it."""
    page = sandbox.client.get(path, follow_redirects=False)
    assert page.status_code == 404
    assert f"The sandbox has nothing at {path}." in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert (f'href="{near}"' in page.text) if near else ("Did you mean" not in page.text)


def test_an_unknown_address_is_shown_as_text(sandbox: Sandbox) -> None:
    """Whatever it contains."""
    page = sandbox.client.get("/<script>alert(1)</script>")
    assert page.status_code == 404
    assert "<script" not in page.text


def test_an_unknown_endpoint_is_no_page(sandbox: Sandbox) -> None:
    """A machine gets JSON."""
    answer = sandbox.client.get("/api/v1/users")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_a_wrong_method(sandbox: Sandbox, person: Person) -> None:
    """The page names the right one, and the header does."""
    person.sign_in()
    page = person.browser.get("/account/sign-out")
    assert (page.status_code, page.headers["Allow"]) == (405, "POST")
    assert "does not take GET, only POST" in page.text


def test_a_form_of_another_site(sandbox: Sandbox) -> None:
    """Refused with words."""
    page = Visitor(sandbox).browser.post("/account/sign-in")
    assert page.status_code == 403
    assert "This form cannot be accepted" in page.text


@pytest.mark.processes
def test_a_mistake_of_the_sandbox(tmp_path: Path) -> None:
    """A page without a traceback; a machine gets the envelope."""
    path = tmp_path / "broken.sqlite3"
    with Sandbox("--database", str(path)) as broken:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DROP TABLE sandbox_user")
            database.execute("DROP TABLE sandbox_accesstoken")
        page = broken.client.get("/account/sign-in")
        assert (page.status_code, "The sandbox has failed" in page.text) == (500, True)
        assert "Traceback" not in page.text
        answer = broken.client.get("/api/v1/users/x/kyc", headers={"Authorization": "Bearer x"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
