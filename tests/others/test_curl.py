"""curl walks the interface with its cookies, forms and JSON; openssl checks the signatures."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.sandbox.driver import REDIRECT_URI, Application, Person, Pkce, Sandbox
from tests.sandbox.receiver import SECRET, Receiver

pytestmark = pytest.mark.integration
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
REFUSED = "INVALID_CONNECT_CODE"


class Curl:
    """curl with a jar for cookies, which follows no redirect by itself."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.jar = sandbox, folder / "cookies"

    def __call__(self, address: str, *options: str, show: str = "") -> str:
        """The body, or what ``show`` names of the answer."""
        address = address if "://" in address else self.sandbox.origin + address
        told = ["-w", show, "-o", "/dev/null"] if show else []
        command = ["curl", "-sS", "-b", self.jar, "-c", self.jar, *told, *options, address]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def api(self, path: str, *options: str, **body: object) -> dict[str, Any]:
        """The data of a success, or the error."""
        sent = ["--json", json.dumps(body)] if body else []
        answer = json.loads(self(f"/api/v1/{path}", *sent, *options))
        told: dict[str, Any] = answer["data"] if answer["success"] else answer["error"]
        return told

    def press(self, address: str, /, *, at: str = "", **fields: str) -> str:
        """Send the form of a page, its own or the one ``at`` another address; where it leads."""
        token = CSRF.search(self(at or address))
        assert token, address
        return self(address, *form(csrfmiddlewaretoken=token[1], **fields), show="%{redirect_url}")

    def sign_in(self, person: Person) -> None:
        account = person.account
        came = self.press("/account/sign-in", email=account["email"], password=account["password"])
        assert urlsplit(came).path == "/account/"


def form(**fields: str) -> list[str]:
    return [part for name in fields for part in ("--data-urlencode", f"{name}={fields[name]}")]


@pytest.fixture
def curl(sandbox: Sandbox, tmp_path: Path) -> Curl:
    return Curl(sandbox, tmp_path)


def test_sign_in(curl: Curl, application: Application, person: Person) -> None:
    """A denial, an approval, the exchange, a refresh, and the three answers about the person."""
    curl.sign_in(person)
    pkce = Pkce()
    address = application.authorization_url(pkce, state="s 1")
    for decision, told in (("deny", "error"), ("allow", "code")):
        back = curl.press(address, **{decision: "1"})
        assert back.startswith(f"{REDIRECT_URI}?")
        given = parse_qs(urlsplit(back).query)
        assert given["state"] == ["s 1"]
        assert told in given
    client = {"client_id": application.client_id, "client_secret": application.client_secret}
    exchange = {"redirect_uri": REDIRECT_URI, "code_verifier": pkce.verifier}
    sent = form(**client, **exchange, grant_type="authorization_code", code=given["code"][0])
    first = json.loads(curl("/oauth2/token", *sent))
    again = form(**client, grant_type="refresh_token", refresh_token=first["refresh_token"])
    second = json.loads(curl("/oauth2/token", *again))
    bearer = ("-H", f"Authorization: Bearer {second['access_token']}")
    assert curl.api(f"users/{person.user_id}/profile", *bearer)["id"] == person.user_id
    assert curl.api("users/me/kyc", *bearer)["status"] == "verified"
    assert curl.api("users/me/claims", *bearer)["credential_format"] == "dc+sd-jwt"
    assert json.loads(curl("/oauth2/token", *again))["error"] == "invalid_grant"
    assert curl.api("users/me/kyc", *bearer)["code"] == "UNAUTHORIZED"


def test_connect(curl: Curl, application: Application, person: Person) -> None:
    """A code from the page is good once, by Basic."""
    curl.sign_in(person)
    shown = curl(curl.press("/account/connect-codes/new", password=person.account["password"]))
    code = re.search(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", shown)[0]
    basic = ("-u", f"{application.client_id}:{application.client_secret}")
    asked = {"connect_code": code, "scopes": ["profile:basic", "kyc:status"]}
    assert curl.api("connect/request", **asked)["code"] == "UNAUTHORIZED"
    assert curl.api("connect/request", *basic, **asked)["user_id"] == person.user_id
    assert curl.api("connect/request", *basic, **asked)["code"] == REFUSED
    assert "received your information" in curl("/account/")


def test_account_and_events(curl: Curl, sandbox: Sandbox, application: Application) -> None:
    """What a person does on the pages, and the events of it, whose signature openssl checks."""
    person = Person(sandbox)
    curl.sign_in(person)
    with Receiver() as receiver:
        application.receive_at(receiver.url, secret=SECRET)
        person.consent_to(application)
        curl.press("/account/verify", bvn="22222222222")
        for way in ("revoke", "issue"):
            curl.press(f"/account/claims/age_over_18/{way}", at="/account/")
        curl.press("/account/verify", bvn="11111111111")
        curl.press(f"/account/consents/{application.client_id}/revoke", at="/account/")
        curl.press("/account/delete", delete="1")
        receiver.wait_for(15)
        assert receiver.types == [
            "consent.granted", "kyc.verified", *["claim.issued"] * 4, "claim.revoked",
            "claim.issued", "kyc.rejected", *["claim.revoked"] * 4, "consent.revoked",
            "data.deletion_requested",
        ]  # fmt: skip
        for each in receiver.requests:
            command = ["openssl", "dgst", "-sha256", "-hmac", SECRET]
            done = subprocess.run(command, input=each.body, capture_output=True, check=True)
            assert done.stdout.decode().split()[-1] == each.headers["x-webhook-signature"]
