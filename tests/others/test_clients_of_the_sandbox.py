"""Clients that are not ours at the sandbox: Authlib and requests-oauthlib sign in and refresh."""

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from requests_oauthlib import OAuth2Session

from tests.sandbox.driver import ALL_SCOPES, REDIRECT_URI, Application, Person, Sandbox

pytestmark = pytest.mark.integration
VERIFIER = "a-verifier-of-64-characters-that-nobody-has-to-guess-in-a-test-00"


@pytest.fixture(autouse=True)
def _plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """These libraries refuse plain http, also to this machine, unless told otherwise."""
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")


def callback(sandbox: Sandbox, person: Person, address: str) -> str:
    """Where the person's browser comes back to."""
    answer = sandbox.control("POST", "authorizations", url=address, user_id=person.user_id)
    return str(answer["callback"])


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_authlibs_client(application: Application, person: Person, method: str) -> None:
    """Signs in with PKCE, reads, refreshes, and is told about a spent token; Basic is a switch."""
    sandbox = application.sandbox
    with AuthlibSession(
        application.client_id, application.client_secret, token_endpoint_auth_method=method,
        scope=ALL_SCOPES, redirect_uri=REDIRECT_URI, code_challenge_method="S256",
        token_endpoint=f"{sandbox.origin}/oauth2/token",
    ) as session:  # fmt: skip
        began = session.create_authorization_url(
            f"{sandbox.origin}/oauth2/auth", code_verifier=VERIFIER
        )
        sent = {"authorization_response": callback(sandbox, person, began[0]), "state": began[1]}
        if method == "client_secret_basic":
            with pytest.raises(OAuthError, match="invalid_client"):
                session.fetch_token(**sent, code_verifier=VERIFIER)
            sandbox.switch(basic_clients=True)
        token = session.fetch_token(**sent, code_verifier=VERIFIER)
        assert token["token_type"] == "Bearer"
        profile = session.get(f"{sandbox.api}/users/me/profile").json()
        assert profile["data"]["id"] == person.user_id
        newer = session.refresh_token()
        assert newer["refresh_token"] != token["refresh_token"]
        with pytest.raises(OAuthError, match="invalid_grant"):
            session.refresh_token(refresh_token=token["refresh_token"])


def test_requests_oauthlib(application: Application, person: Person) -> None:
    """Signs in with PKCE, reads and refreshes."""
    sandbox, secret = application.sandbox, application.client_secret
    scopes, token_url = ALL_SCOPES.split(), f"{sandbox.origin}/oauth2/token"
    with OAuth2Session(
        application.client_id, redirect_uri=REDIRECT_URI, scope=scopes, pkce="S256"
    ) as session:
        address, _state = session.authorization_url(f"{sandbox.origin}/oauth2/auth")
        came = {"authorization_response": callback(sandbox, person, address)}
        token = session.fetch_token(token_url, **came, client_secret=secret, include_client_id=True)
        assert set(token["scope"]) == set(scopes)
        kyc = session.get(f"{sandbox.api}/users/{person.user_id}/kyc").json()
        assert kyc["data"]["status"] == "verified"
        client = {"client_id": application.client_id, "client_secret": secret}
        assert session.refresh_token(token_url, **client)["access_token"] != token["access_token"]
