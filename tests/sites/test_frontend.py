"""A front end on another origin of the site that calls the JSON API alone."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from django_identity.testing.sandbox import SandboxPerson
from tests.sites.running_site import RunningSite
from tests.sites.site_table import steps_of

pytestmark = steps_of("frontend")
NONE: Mapping[str, str] = {}
ORIGIN = "https://app.shop.example"


class Frontend:
    """What a front end's script does, in the order of ``docs/api.md``."""

    def __init__(self, site: RunningSite, client: httpx.Client) -> None:
        self.site, self._client = site, client
        self._headers = {"Origin": ORIGIN}
        self._headers["X-CSRFToken"] = self.me()["csrf_token"]

    def me(self) -> dict[str, Any]:
        told: dict[str, Any] = self.call("GET", "/identity/api/me").json()
        return told

    def sign_in(self, person: SandboxPerson, *, next_path: str = "/") -> dict[str, Any]:
        begun = self.call("POST", "/identity/api/login", next=next_path)
        back = self.site.sandbox.approve(begun.json()["authorization_url"], person)
        query = dict(parse_qsl(urlsplit(back).query))
        done: dict[str, Any] = self.call(
            "POST", "/identity/api/callback", **query
        ).json()
        # Django changes the token at the sign-in.
        self._headers["X-CSRFToken"] = self.me()["csrf_token"]
        return done

    def call(
        self, method: str, path: str, headers: Mapping[str, str] = NONE, **body: object
    ) -> httpx.Response:
        given = {"json": body} if method == "POST" else {}
        return self._client.request(
            method,
            self.site.address + path,
            headers={**self._headers, **headers},
            **given,
        )


@pytest.fixture
def frontend(site: RunningSite) -> Iterator[Frontend]:
    with site.new_client() as client:
        yield Frontend(site, client)


def test_a_whole_sign_in(frontend, person):
    """Gates open to the person, and say which value is missing."""
    assert frontend.sign_in(person, next_path="/basket")["next"] == "/basket"
    told = frontend.me()
    assert (told["is_authenticated"], told["kyc_status"]) == (True, "verified")
    assert told["claims"]["age_over_18"] is True
    assert frontend.call("GET", "/shop/adults").json() == {"drink": "wine"}
    closed = frontend.call("GET", "/shop/britons")
    assert closed.status_code == 403
    assert closed.json().items() >= {
        "code": "claim_missing", "missing": "country_resident=GB", "recovery": "verify"
    }.items()  # fmt: skip


def test_another_site_cannot_begin_a_sign_in(frontend):
    """Neither without the token, nor from an origin that the site does not trust."""
    for headers in ({"X-CSRFToken": ""}, {"Origin": "https://app.evil.example"}):
        refused = frontend.call("POST", "/identity/api/login", headers)
        assert (refused.status_code, refused.json()["code"]) == (
            403,
            "permission_denied",
        )
    assert frontend.call("POST", "/identity/api/login").status_code == 200
