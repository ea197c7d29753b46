"""curl walks the interface: what a row of docs/interface.md says, a stranger's client meets."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from tests.sandbox.driver import REDIRECT_URI, Application, Person, Pkce, Sandbox
from tests.sandbox.receiver import SECRET, Receiver

pytestmark = pytest.mark.integration
KEY = JWK.generate(kty="EC", crv="P-256", kid="curl-1", alg="ECDH-ES", use="enc")
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass(frozen=True)
class Answer:
    """What curl was told."""

    status: int
    goes_to: str
    text: str

    @property
    def data(self) -> Any:
        """The data of a success in the envelope."""
        body = json.loads(self.text)
        assert body["success"] is True
        return body["data"]

    @property
    def refused(self) -> tuple[int, str]:
        """The status and the code of an error, in either form."""
        error = json.loads(self.text)["error"]
        return self.status, error if isinstance(error, str) else error["code"]


class Curl:
    """curl with a jar for cookies, which follows no redirect by itself."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.jar = sandbox, folder / "cookies"

    def __call__(self, address: str, *options: str) -> Answer:
        address = address if "://" in address else self.sandbox.origin + address
        told = ["-w", "\n%{http_code} %{redirect_url}", "-b", self.jar, "-c", self.jar]
        command = ["curl", "-sS", *told, *options, address]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        text, last = done.stdout.rsplit("\n", 1)
        status, goes_to = last.split(" ", 1)
        return Answer(int(status), goes_to, text)

    def api(self, path: str, *options: str, **body: object) -> Answer:
        sent = ["--json", json.dumps(body)] if body else []
        return self(f"/api/v1/{path}", *sent, *options)

    def form(self, address: str, *options: str, **fields: str) -> Answer:
        sent = [part for name in fields for part in ("--data-urlencode", f"{name}={fields[name]}")]
        return self(address, *options, *sent)

    def press(self, address: str, /, *, at: str = "", **fields: str) -> Answer:
        """Open a page, its own or the one ``at`` another address, and send its form."""
        token = CSRF.search(self(at or address).text)
        assert token, address
        return self.form(address, csrfmiddlewaretoken=token[1], **fields)

    def sign_in(self, person: Person) -> None:
        account = person.account
        came = self.press("/account/sign-in", email=account["email"], password=account["password"])
        assert urlsplit(came.goes_to).path == "/account/"

    def tokens(self, application: Application, **changes: str) -> dict[str, Any]:
        """Approve, and exchange the code."""
        pkce = Pkce()
        back = self.press(application.authorization_url(pkce, **changes), allow="1").goes_to
        code = parse_qs(urlsplit(back).query)["code"][0]
        told: dict[str, Any] = json.loads(self.exchange(application, code, pkce.verifier).text)
        return told

    def exchange(self, application: Application, code: str, verifier: str) -> Answer:
        form = {"code": code, "code_verifier": verifier, "redirect_uri": REDIRECT_URI}
        return self.token(application, grant_type="authorization_code", **form)

    def token(self, application: Application, **form: str) -> Answer:
        client = {"client_id": application.client_id, "client_secret": application.client_secret}
        return self.form("/oauth2/token", **client, **form)


@pytest.fixture
def curl(sandbox: Sandbox, tmp_path: Path) -> Curl:
    return Curl(sandbox, tmp_path)


@pytest.fixture
def signed_in(curl: Curl, person: Person) -> Curl:
    curl.sign_in(person)
    return curl


def bearer(tokens: dict[str, Any]) -> tuple[str, str]:
    return "-H", f"Authorization: Bearer {tokens['access_token']}"


def basic(application: Application) -> tuple[str, str]:
    return "-u", f"{application.client_id}:{application.client_secret}"


def test_sign_in(signed_in: Curl, application: Application) -> None:
    """The consent screen, a denial, the code with its state, the exchange, and what is refused."""
    curl, pkce = signed_in, Pkce()
    address = application.authorization_url(pkce, scope="profile:read kyc:read", state="s 1")
    page = curl(address).text
    assert "Your profile" in page
    assert "Your verification status" in page
    denied = parse_qs(urlsplit(curl.press(address, deny="1").goes_to).query)
    assert (denied["error"], denied["state"]) == (["access_denied"], ["s 1"])
    back = curl.press(address, allow="1").goes_to
    assert back.startswith(f"{REDIRECT_URI}?")
    told = parse_qs(urlsplit(back).query)
    assert told["state"] == ["s 1"]
    assert curl.exchange(application, told["code"][0], "x" * 43).refused == (400, "invalid_grant")
    tokens = json.loads(curl.exchange(application, told["code"][0], pkce.verifier).text)
    assert (tokens["expires_in"], set(tokens["scope"].split())) == (
        3600,
        {"profile:read", "kyc:read"},
    )
    again = curl.exchange(application, told["code"][0], pkce.verifier)
    assert again.refused == (400, "invalid_grant")
    plain = curl(application.authorization_url(pkce, code_challenge_method="plain"))
    assert "error=invalid_request" in plain.goes_to
    foreign = curl(application.authorization_url(pkce, redirect_uri="https://attacker.example/"))
    assert (foreign.status, foreign.goes_to) == (400, "")


def test_tokens(signed_in: Curl, application: Application) -> None:
    """They rotate, expire, and end with their family; Basic and the query count for nothing."""
    curl, sandbox = signed_in, application.sandbox
    first = curl.tokens(application)
    again = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    for options in (basic(application), ("-G",)):
        assert curl.form("/oauth2/token", *options, **again).status in {401, 405}
    second = json.loads(curl.token(application, **again).text)
    assert second["refresh_token"] != first["refresh_token"]
    assert curl.api("users/me/kyc", *bearer(second)).data["status"] == "verified"
    assert curl.token(application, **again).refused == (400, "invalid_grant")
    assert curl.api("users/me/kyc", *bearer(second)).refused == (401, "UNAUTHORIZED")
    third = curl.tokens(application)
    sandbox.advance(3601)
    assert curl.api("users/me/kyc", *bearer(third)).status == 401
    sandbox.advance(30 * 86400)
    ended = {"grant_type": "refresh_token", "refresh_token": third["refresh_token"]}
    assert curl.token(application, **ended).refused == (400, "invalid_grant")


def test_user_endpoints(signed_in: Curl, application: Application, person: Person) -> None:
    """Profile, KYC and claims with their members; each with its scope, and its own person."""
    curl = signed_in
    tokens = bearer(curl.tokens(application))
    profile = curl.api(f"users/{person.user_id}/profile", *tokens).data
    names = {"id", "email", "first_name", "last_name", "country", "photo_url", "kyc_level"}
    assert profile.keys() == names
    kyc = curl.api(f"users/{person.user_id}/kyc", *tokens).data
    assert kyc.keys() == {"kyc_level", "status", "verified_at", "provider"}
    claims = curl.api(f"users/{person.user_id}/claims", *tokens).data
    assert claims.keys() == {"user_id", "claims", "credential", "credential_format"}
    for each in claims["claims"]:
        assert each.keys() == {"claim_type", "provider", "revoked", "proof_hash", "expires_at"}
    assert curl.api("users/nobody/kyc", *tokens).refused == (403, "USER_MISMATCH")
    assert curl.api("users/me/kyc").refused == (401, "UNAUTHORIZED")
    few = bearer(curl.tokens(application, scope="profile:read"))
    assert curl.api("users/me/kyc", *few).refused == (403, "INSUFFICIENT_SCOPE")
    verified = curl.api("claims/verify", *basic(application), credential=claims["credential"])
    assert (verified.data["valid"], len(verified.data["claims"])) == (True, 4)
    bent = curl.api("claims/verify", *basic(application), credential=claims["credential"] + "x")
    assert bent.data == {"valid": False, "reason": "malformed", "claims": {}}
    keys = json.loads(curl("/.well-known/jwks.json").text)["keys"]
    assert keys[0]["kid"] == application.sandbox.control("GET", "keys")["signing"]


def test_documents(signed_in: Curl, application: Application) -> None:
    """The trusted tier is a key; metadata is for every tier."""
    curl = signed_in
    scope = "documents:metadata documents:read"
    refused = curl(application.authorization_url(Pkce(), scope=scope)).goes_to
    assert "error=invalid_scope" in refused
    key = KEY.export_public(as_dict=True)
    application.sandbox.control("POST", f"{application.path}/trusted-tier", document_key=key)
    tokens = bearer(curl.tokens(application, scope=scope))
    listed = curl.api("users/me/documents/metadata", *tokens).data["documents"]
    assert {"document_type", "country", "status"} <= listed[0].keys()
    assert "content" not in listed[0]
    sealed = JWE()
    sealed.deserialize(curl.api("users/me/documents", *tokens).data["documents"][0]["content"], KEY)
    assert sealed.payload.startswith(b"\x89PNG")


def test_connect(signed_in: Curl, application: Application, person: Person) -> None:
    """A code from the page, once, by Basic; and each refusal of the table."""
    curl = signed_in
    password, page = person.account["password"], "/account/connect-codes/new"
    shown = curl(curl.press(page, password=password).goes_to).text
    code = re.search(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", shown)[0]

    def ask(**body: object) -> Answer:
        scopes = {"scopes": ["profile:basic", "kyc:status"]}
        return curl.api("connect/request", *basic(application), **scopes | body)

    assert curl.api("connect/request", connect_code=code).refused == (401, "UNAUTHORIZED")
    result = ask(connect_code=code, callback_url="https://shop.example/").data
    names = {"status", "request_id", "user_id", "data", "issued_at", "signature"}
    assert (result.keys(), result["user_id"]) == (names, person.user_id)
    assert result["data"]["profile"].keys() == {"first_name", "last_name", "email", "country"}
    assert result["data"]["kyc"].keys() == {"kyc_level", "status", "verified_at", "provider"}
    assert "received your information" in curl("/account/").text
    assert ask(connect_code=code).refused == (400, "INVALID_CONNECT_CODE")
    assert ask(infra_user_id="u").refused == (400, "CONNECT_CODE_REQUIRED")
    assert curl.api("connect/result/req_1").refused == (404, "NOT_FOUND")
    application.require(proof_of_address=True)
    policy = ask(connect_code=person.make_code())
    assert policy.refused == (403, "POA_REQUIRED")
    assert json.loads(policy.text)["kyc_required"] is True
    assert json.loads(policy.text)["kyc_url"].endswith("/account/verify")
    curl.press("/account/verify/address", at="/account/verify")
    late = person.make_code()
    application.sandbox.advance(601)
    assert ask(connect_code=late).refused == (400, "INVALID_CONNECT_CODE")
    application.use("live")
    assert ask(connect_code=person.make_code()).refused == (403, "ENVIRONMENT_MISMATCH")


def test_developer(curl: Curl, application: Application) -> None:
    """A new secret and a test user, for who has the portal's session token."""
    token = ("-H", f"Authorization: Bearer {application.sandbox.portal_token}")
    app_id = application.app_id
    assert curl.api("developer/test-users", appId=app_id).refused == (401, "UNAUTHORIZED")
    made = curl.api("developer/test-users", *token, appId=app_id)
    assert (made.status, made.data.keys()) == (201, {"userId", "email", "password"})
    rotated = curl.api(f"developer/apps/{app_id}/rotate-secret", *token, mode="test").data
    assert rotated.keys() == {"mode", "clientId", "clientSecret"}
    assert curl.token(application, grant_type="refresh_token", refresh_token="x").refused == (
        401,
        "invalid_client",
    )


def test_account_and_events(curl: Curl, sandbox: Sandbox, application: Application) -> None:
    """What a person does on the pages, and the events of it, whose signature openssl checks."""
    person = Person(sandbox)
    curl.sign_in(person)
    for bvn, words in (("00000000000", "not available"), ("11111111111", "name does not match"),
                       ("33333333333", "not found"), ("7", "not found")):  # fmt: skip
        assert words in curl.press("/account/verify", bvn=bvn).text
    with Receiver() as receiver:
        application.receive_at(receiver.url, secret=SECRET)
        person.consent_to(application)
        curl.press("/account/verify", bvn="22222222222")
        access = f"consents/{application.client_id}"
        for way in ("claims/age_over_18/revoke", "claims/age_over_18/issue", f"{access}/revoke"):
            curl.press(f"/account/{way}", at="/account/")
            if way.endswith("issue"):
                curl.press("/account/verify", bvn="11111111111")
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
    assert "do not match" in curl.press("/account/sign-in", email=person.account["email"],
                                        password=person.account["password"]).text  # fmt: skip
