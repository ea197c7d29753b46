"""The token endpoint's manners: who may ask, what a bad request is told, what a replay costs."""

import base64

import httpx
import pytest

from tests.sandbox.driver import REDIRECT_URI, Application, Person, Pkce, Sandbox, bearer

MACHINE_ENDPOINTS = [
    ("/oauth2/token", "POST"),
    ("/.well-known/jwks.json", "GET"),
    ("/api/v1/users/me/profile", "GET"),
    ("/api/v1/users/me/kyc", "GET"),
    ("/api/v1/users/me/claims", "GET"),
    ("/api/v1/users/me/documents", "GET"),
    ("/api/v1/users/me/documents/metadata", "GET"),
    ("/api/v1/claims/verify", "POST"),
    ("/api/v1/connect/request", "POST"),
    ("/api/v1/developer/test-users", "POST"),
    ("/api/v1/developer/apps/x/rotate-secret", "POST"),
]


def exchange(
    application: Application, code: str, pkce: Pkce, *, header: str = "", **form: str
) -> httpx.Response:
    """Exchange a code with whatever names the client."""
    sent = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT_URI,
        "code_verifier": pkce.verifier,
        **form,
    }
    headers = {"Authorization": header} if header else {}
    return application.sandbox.client.post("/oauth2/token", data=sent, headers=headers)


def basic(client_id: str, secret: str, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"


def credentials(application: Application, scheme: str = "Basic") -> str:
    return basic(application.client_id, application.client_secret, scheme)


@pytest.mark.parametrize("scheme", ["Basic", "basic"])
def test_a_client_may_use_basic(application: Application, person: Person, scheme: str) -> None:
    """With or without its id in the body; the refresh token too is spent so."""
    code, pkce = person.approve(application)
    header = credentials(application, scheme)
    tokens = exchange(application, code, pkce, header=header, client_id=application.client_id)
    assert tokens.status_code == 200
    spent = application.sandbox.client.post(
        "/oauth2/token",
        data={"grant_type": "refresh_token", "refresh_token": tokens.json()["refresh_token"]},
        headers={"Authorization": header},
    )
    assert spent.status_code == 200


def test_strictly_read_the_body_alone_counts(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """The specification shows the body; the switch ends the other way."""
    sandbox.control("POST", "switches", basic_clients=False)
    code, pkce = person.approve(application)
    refused = exchange(application, code, pkce, header=credentials(application))
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert application.redeem(code, pkce).status_code == 200


@pytest.mark.parametrize("where", ["header", "body", "none", "broken header", "other id"])
def test_a_bad_client_is_challenged(application: Application, person: Person, where: str) -> None:
    """401, ``invalid_client``, and the scheme that would have been right; the code stays good."""
    code, pkce = person.approve(application)
    header, form = {
        "header": (basic(application.client_id, "wrong"), {}),
        "body": ("", {"client_id": application.client_id, "client_secret": "wrong"}),
        "none": ("", {"client_id": application.client_id}),
        "broken header": ("Basic ???", {}),
        "other id": (credentials(application), {"client_id": "another"}),
    }[where]
    refused = exchange(application, code, pkce, header=header, **form)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert refused.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert application.redeem(code, pkce).status_code == 200


def test_a_client_names_itself_once(application: Application, person: Person) -> None:
    """A secret in header and body is a bad request (RFC 6749, section 2.3)."""
    code, pkce = person.approve(application)
    twice = {"client_id": application.client_id, "client_secret": application.client_secret}
    refused = exchange(application, code, pkce, header=credentials(application), **twice)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")


def test_a_replayed_code_ends_its_tokens(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Those of its sign-in, refreshed ones too, and no others (RFC 6749, section 4.1.2)."""
    other = person.tokens_for(application)
    code, pkce = person.approve(application)
    tokens = application.redeem(code, pkce).json()
    refreshed = application.refresh(tokens["refresh_token"]).json()
    replayed = application.redeem(code, pkce)
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    profile = "/api/v1/users/me/profile"
    assert sandbox.client.get(profile, headers=bearer(refreshed)).status_code == 401
    assert application.refresh(refreshed["refresh_token"]).json()["error"] == "invalid_grant"
    assert sandbox.client.get(profile, headers=bearer(other)).status_code == 200


def test_a_stranger_replays_nothing(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Who cannot prove to be the client ends nobody's tokens, and neither does another client."""
    code, pkce = person.approve(application)
    tokens = application.redeem(code, pkce).json()
    stranger = exchange(application, code, pkce, client_id=application.client_id)
    assert stranger.status_code == 401
    assert Application(sandbox).redeem(code, pkce).json()["error"] == "invalid_grant"
    answer = sandbox.client.get("/api/v1/users/me/profile", headers=bearer(tokens))
    assert answer.status_code == 200


def test_another_redirect_address_is_a_bad_grant(application: Application, person: Person) -> None:
    """``invalid_grant`` (RFC 6749, section 5.2)."""
    code, pkce = person.approve(application)
    refused = application.redeem(code, pkce, redirect_uri="http://127.0.0.1:8000/other")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "grant_type", ["urn:ietf:params:oauth:grant-type:device_code", "password", "x", ""]
)
def test_an_unknown_grant_type_is_named(application: Application, grant_type: str) -> None:
    """No grant type that the specification lacks ends in an error page."""
    refused = application.token_request(grant_type=grant_type)
    assert refused.status_code == 400
    assert refused.json()["error"] == "unsupported_grant_type"


@pytest.mark.parametrize(("path", "allowed"), MACHINE_ENDPOINTS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_another_method_is_no_page(sandbox: Sandbox, path: str, allowed: str, method: str) -> None:
    """405 as JSON, with the method that is allowed; never a page about CSRF."""
    if method == allowed:
        return
    refused = sandbox.client.request(method, path, headers={"Origin": "https://shop.example"})
    assert refused.status_code == 405
    assert allowed in refused.headers["Allow"]
    assert refused.headers["Content-Type"] == "application/json"
