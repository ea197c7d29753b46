"""Drives a running sandbox as an application and as a person with a browser would."""

import base64
import hashlib
import html
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
from jwcrypto.jwk import JWK

from django_identity.testing.sandbox import RunningSandbox, running_sandbox

REDIRECT_URI = "http://127.0.0.1:8000/callback"
ALL_SCOPES = "profile:read kyc:read claims:read"
CONNECT_SCOPES = ["profile:basic", "kyc:status"]
INVALID_GRANT = (400, "invalid_grant")
INVALID_CLIENT = (401, "invalid_client")
ADA = "00000000-0000-4000-8000-000000000001"
KEY = JWK.generate(
    kty="EC",
    crv="P-256",
    kid="documents-1",
    alg="ECDH-ES+A256KW",
    use="enc",
)
# For plain http; each client would load all certificates again, which takes longer than most tests.
TLS = httpx.create_ssl_context()


class Sandbox(ExitStack):
    """The kit's sandbox, a client that asks it anything, and the browsers of people."""

    def __init__(self, running: RunningSandbox) -> None:
        super().__init__()
        self.control, self.portal_token = running.control, running.portal_token
        self.api, self.origin = running.base_url, running.auth_url
        self.port = urlsplit(self.origin).port
        self.client = self.open_browser()

    def open_browser(self) -> httpx.Client:
        """A client with cookies of its own, and with the authority in SSL_CERT_FILE for https."""
        verify = TLS if self.origin.startswith("http:") else httpx.create_ssl_context()
        client = httpx.Client(base_url=self.origin, timeout=120, verify=verify)
        return self.enter_context(client)

    def switch(self, **values: object) -> None:
        self.control("POST", "switches", **values)

    def is_sending(self) -> bool:
        """Whether a delivery's turn has come, and it has not ended yet."""
        now = datetime.fromisoformat(self.control("GET", "clock")["now"])
        turns = [each["next_attempt_at"] for each in self.control("GET", "deliveries")]
        return any(datetime.fromisoformat(turn) <= now for turn in turns if turn)

    def advance(self, seconds: float) -> None:
        self.control("POST", "clock", advance=seconds)


@contextmanager
def started(*options: str) -> Iterator[Sandbox]:
    """A process of its own, with command-line ``options``."""
    with running_sandbox(*options) as running, Sandbox(running) as sandbox:
        yield sandbox


@dataclass(frozen=True, slots=True)
class Pkce:
    """A code verifier and its S256 challenge."""

    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Application:
    """A registered application, as one of its credential sets: a new one, or ``made``."""

    def __init__(self, sandbox: Sandbox, mode: str = "test", made: Any = None) -> None:
        self.sandbox = sandbox
        addresses = {"redirect_uris": [REDIRECT_URI]}
        self._made = made or sandbox.control("POST", "applications", **addresses)
        self.app_id = self._made["app_id"]
        self.path = f"applications/{self.app_id}"
        self.use(mode)

    def use(self, mode: str) -> None:
        """Go on with the credential set of ``mode``."""
        self.mode = mode
        self.client_id = self._made[mode]["client_id"]
        self.client_secret = self._made[mode]["client_secret"]

    @property
    def credentials(self) -> dict[str, str]:
        return {"client_id": self.client_id, "client_secret": self.client_secret}

    def receive_at(self, url: str, **secret: str) -> None:
        given = {"mode": self.mode, "url": url, **secret}
        self.sandbox.control("POST", f"{self.path}/webhook", **given)

    def trust(self, key: JWK) -> Any:
        given = {"document_key": key.export_public(as_dict=True)}
        return self.sandbox.control("POST", f"{self.path}/trusted-tier", **given)

    def deliveries(self) -> list[dict[str, Any]]:
        listed = self.sandbox.control("GET", "deliveries")
        return [each for each in listed if each["client_id"] == self.client_id]

    def authorization_url(self, pkce: Pkce, **changes: str | None) -> str:
        """Return an authorization address; a parameter changed to none is left out."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "scope": ALL_SCOPES,
            "state": "state-value",
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
            **changes,
        }
        sent = {name: value for name, value in parameters.items() if value is not None}
        return str(httpx.URL(f"{self.sandbox.origin}/oauth2/auth", params=sent))

    def token_request(self, **form: str) -> httpx.Response:
        return self.sandbox.client.post("/oauth2/token", data=self.credentials | form)

    def redeem(self, code: str, pkce: Pkce, **changes: str) -> httpx.Response:
        return self.token_request(**exchange(code, pkce) | changes)

    def refresh(self, refresh_token: str, **changes: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return self.token_request(**form | changes)

    def ask(self, path: str, body: object, **options: Any) -> httpx.Response:
        """Send JSON to an endpoint of the API that takes Basic credentials."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        asked = {
            "headers": {"Content-Type": "application/json"},
            "auth": (self.client_id, self.client_secret),
        } | options
        return self.sandbox.client.post(f"/api/v1/{path}", content=content, **asked)

    def connect(
        self,
        code: object,
        scopes: object = CONNECT_SCOPES,
        **more: Any,
    ) -> httpx.Response:
        body = {"connect_code": code, "scopes": scopes, **more}
        return self.ask("connect/request", body)


HIDDEN = re.compile(r'type="hidden" name="([^"]*)" value="([^"]*)"')


class Visitor:
    """Somebody with a browser that follows redirects to the sandbox only."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.browser = sandbox.open_browser()

    def open(self, url: str) -> httpx.Response:
        return self.follow(self.browser.get(url))

    def submit(
        self,
        page: httpx.Response,
        action: str = "",
        /,
        **fields: str,
    ) -> httpx.Response:
        """Send the first form of the page that has the action and fields, with its hidden ones."""
        for form in re.findall(r"<form.*?</form>", page.text, re.DOTALL):
            found = re.search(r'<form[^>]*action="([^"]*)"', form)
            target = html.unescape(found[1]) if found else str(page.url)
            has_all = all(f'name="{name}"' in form for name in fields)
            if target.endswith(action) and has_all:
                sent = {
                    name: html.unescape(value) for name, value in HIDDEN.findall(form)
                }
                answer = self.browser.post(page.url.join(target), data=sent | fields)
                return self.follow(answer)
        raise AssertionError(f"No form {action} with {[*fields]} in {page.url.path}")

    def follow(self, response: httpx.Response) -> httpx.Response:
        """Follow redirects up to the first foreign one."""
        while (follow := response.next_request) and follow.url.host == "127.0.0.1":
            if str(follow.url).startswith(REDIRECT_URI):
                break
            response = self.browser.send(follow)
        return response


class Person(Visitor):
    """A person with an account: a new one, or the one that ``known`` describes."""

    def __init__(
        self,
        sandbox: Sandbox,
        known: dict[str, Any] | None = None,
        **account: object,
    ) -> None:
        super().__init__(sandbox)
        self.account = known or sandbox.control("POST", "users", **account)
        self.user_id = self.account.get("user_id", "")

    def sign_in(self, page: httpx.Response | None = None) -> httpx.Response:
        """Sign in on the given page, or on the sign-in page."""
        page = page or self.open("/account/sign-in")
        return self.submit(
            page,
            email=self.account["email"],
            password=self.account["password"],
        )

    def consent_screen(
        self,
        application: Application,
        pkce: Pkce | None = None,
        **changes: str | None,
    ) -> httpx.Response:
        """Walk from the authorization address to the consent screen."""
        page = self.open(application.authorization_url(pkce or Pkce(), **changes))
        if page.url.path == "/account/sign-in":
            page = self.sign_in(page)
        if page.url.path == "/account/verify":
            page = self.submit(page, skip="1")
        return page

    def walk(self, application: Application) -> Any:
        """Approve on the consent screen, and exchange the code."""
        page = self.consent_screen(application, pkce := Pkce())
        answer = callback_parameters(self.submit(page, allow="Approve"))
        return application.redeem(answer["code"], pkce).json()

    def decide(self, url: str, **body: object) -> httpx.Response:
        members = {"url": url, "user_id": self.user_id, **body}
        return self.sandbox.client.post("/sandbox/authorizations", json=members)

    def approve(
        self,
        application: Application,
        **changes: str | None,
    ) -> tuple[str, Pkce]:
        """Approve without a browser, and return the code."""
        pkce = Pkce()
        answer = self.decide(application.authorization_url(pkce, **changes))
        return httpx.URL(answer.json()["callback"]).params["code"], pkce

    def tokens_for(self, application: Application, **changes: str | None) -> Any:
        """Approve without a browser, and exchange the code."""
        response = application.redeem(*self.approve(application, **changes))
        assert response.status_code == 200, response.text
        return response.json()

    def read(
        self,
        tokens: dict[str, Any],
        what: str,
        user_id: str = "me",
    ) -> httpx.Response:
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        path = f"/api/v1/users/{user_id}/{what}"
        return self.sandbox.client.get(path, headers=bearer)

    def consent_to(self, application: Application, *scopes: str) -> None:
        asked = scopes or ALL_SCOPES.split()
        self.cause(f"consents/{application.client_id}/grant", scopes=asked)

    def cause(self, what: str, /, **body: object) -> Any:
        """Let the control API do something to this person."""
        return self.sandbox.control("POST", f"users/{self.user_id}/{what}", **body)

    def shown(self) -> Any:
        return self.sandbox.control("GET", f"users/{self.user_id}")

    def active_claims(self) -> set[str]:
        claims = self.shown()["claims"].items()
        return {name for name, each in claims if not each["revoked"]}

    def make_code(self) -> str:
        made = self.sandbox.control("POST", "connect-codes", user_id=self.user_id)
        return str(made["code"])

    def code_states(self) -> list[str]:
        return [each["state"] for each in self.shown()["connect_codes"]]


def callback_parameters(response: httpx.Response) -> dict[str, str]:
    location = response.headers["Location"]
    assert location.startswith(REDIRECT_URI)
    return dict(httpx.URL(location).params)


def exchange(code: str, pkce: Pkce) -> dict[str, str]:
    """Return what a token request sends for a code, beside the client's credentials."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT_URI,
        "code_verifier": pkce.verifier,
    }


def basic(client_id: str, secret: str, scheme: str = "Basic") -> dict[str, str]:
    encoded = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    return {"Authorization": f"{scheme} {encoded}"}


def refusal(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of an error, in the envelope or in OAuth's form."""
    body = response.json()
    if isinstance(body["error"], str):
        return response.status_code, body["error"]
    assert body["success"] is False
    return response.status_code, body["error"]["code"]
