"""Front ends that call the JSON API alone: with sessions, and with tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.sites.running import RunningSite, running_site
from tests.sites.table import site_named

pytestmark = pytest.mark.sites


class Frontend:
    """What a front end's script does, in the order of ``docs/api.md``."""

    def __init__(self, site: RunningSite, client: httpx.Client) -> None:
        self.site, self._client = site, client
        self._headers: dict[str, str] = {}
        self._headers["X-CSRFToken"] = self.me()["csrf_token"]

    def me(self) -> dict[str, Any]:
        told: dict[str, Any] = self.call("GET", "/identity/api/me").json()
        return told

    def sign_in(self, person: SandboxPerson, *, next_path: str = "/") -> dict[str, Any]:
        begun = self.call("POST", "/identity/api/login", next=next_path)
        back = self.site.sandbox.approve(begun.json()["authorization_url"], person)
        query = dict(parse_qsl(urlsplit(back).query))
        done: dict[str, Any] = self.call("POST", "/identity/api/callback", **query).json()
        if "token" in done:
            self._headers = {"Authorization": f"Token {done['token']}"}
        else:
            # Django changes the token at the sign-in.
            self._headers["X-CSRFToken"] = self.me()["csrf_token"]
        return done

    def call(self, method: str, path: str, **body: object) -> httpx.Response:
        given = {"json": body} if method == "POST" else {}
        return self._client.request(
            method, self.site.address + path, headers=self._headers, **given
        )


@pytest.fixture(scope="module", params=["frontend", "tokens"])
def site(
    request: pytest.FixtureRequest,
    sandbox: RunningSandbox,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningSite]:
    folder = tmp_path_factory.mktemp(request.param)
    with running_site(site_named(request.param), sandbox, folder) as started:
        yield started


@pytest.fixture
def frontend(site: RunningSite) -> Iterator[Frontend]:
    with site.new_client() as client:
        yield Frontend(site, client)


def test_a_first_visit(frontend: Frontend) -> None:
    """The first call says that nobody is signed in, and a gate what is missing."""
    told = frontend.me()
    assert (told["is_authenticated"], told["claims"]) == (False, {})
    assert "claims:read" in told["scopes"]
    closed = frontend.call("GET", "/shop/adults")
    assert (closed.status_code, closed.json()["code"]) == (401, "not_signed_in")


def test_a_whole_sign_in(frontend: Frontend, person: SandboxPerson) -> None:
    """Gates open to the person, and say which value is missing."""
    assert frontend.sign_in(person, next_path="/basket")["next"] == "/basket"
    told = frontend.me()
    assert (told["is_authenticated"], told["kyc_status"]) == (True, "verified")
    assert told["claims"]["age_over_18"] is True
    assert frontend.call("GET", "/shop/adults").json() == {"drink": "wine"}
    closed = frontend.call("GET", "/shop/britons")
    assert (closed.status_code, closed.json()["missing"]) == (403, "country_resident=GB")


def test_a_connect_code(frontend: Frontend, person: SandboxPerson) -> None:
    """Handed in by the signed-in person; another person's code is refused."""
    frontend.sign_in(person)
    sandbox = frontend.site.sandbox
    code = sandbox.control("POST", "connect-codes", user_id=person.user_id)["code"]
    assert frontend.call("POST", "/identity/api/connect", connect_code=code).status_code == 200
    other = sandbox.control("POST", "connect-codes", user_id=sandbox.create_person().user_id)
    refused = frontend.call("POST", "/identity/api/connect", connect_code=other["code"])
    assert (refused.status_code, refused.json()["code"]) == (403, "user_holds_another")


def test_a_revoked_consent_ends_it(frontend: Frontend, person: SandboxPerson) -> None:
    """The session or the token is worth nothing when the webhook has answered."""
    frontend.sign_in(person)
    site = frontend.site
    site.sandbox.control("POST", f"users/{person.user_id}/consents/{site.client_id}/revoke")
    site.settle()
    assert frontend.call("GET", "/shop/adults").status_code == 401
    assert frontend.call("POST", "/identity/api/disconnect").status_code == 401


def test_disconnecting_ends_it(frontend: Frontend, person: SandboxPerson) -> None:
    """The person's own wish."""
    frontend.sign_in(person)
    assert frontend.call("POST", "/identity/api/disconnect").json()["disconnected"] is True
    assert frontend.call("GET", "/shop/adults").status_code == 401


def test_nobody_is_signed_in_without_the_csrf_token(site: RunningSite) -> None:
    """A page of another site cannot begin a sign-in here."""
    with site.new_client() as client:
        refused = client.post(f"{site.address}/identity/api/login", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
