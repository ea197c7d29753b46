"""A client that is not ours at the sandbox: Authlib signs in and refreshes."""

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from tests.sandbox.driver import ALL_SCOPES, REDIRECT_URI, Application, Person

pytestmark = pytest.mark.integration
VERIFIER = "a-verifier-of-64-characters-that-nobody-has-to-guess-in-a-test-00"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_authlibs_client(
    application: Application, person: Person, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs in with PKCE, reads, refreshes, and is told about a spent token; Basic is a switch."""
    # It refuses plain http, also to this machine, unless told otherwise.
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    sandbox = application.sandbox
    with OAuth2Session(
        application.client_id, application.client_secret, token_endpoint_auth_method=method,
        scope=ALL_SCOPES, redirect_uri=REDIRECT_URI, code_challenge_method="S256",
        token_endpoint=f"{sandbox.origin}/oauth2/token",
    ) as session:  # fmt: skip
        address, state = session.create_authorization_url(
            f"{sandbox.origin}/oauth2/auth", code_verifier=VERIFIER
        )
        sent = {"authorization_response": person.decide(address).json()["callback"], "state": state}
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
