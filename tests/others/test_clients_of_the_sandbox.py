"""Clients that are not ours sign in at the sandbox, read, refresh, and verify credentials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from jwcrypto.jwk import JWK
from requests_oauthlib import OAuth2Session
from sd_jwt.verifier import SDJWTVerifier

from tests.sandbox.driver import ALL_SCOPES, REDIRECT_URI, Application, Person, Sandbox, bearer

pytestmark = pytest.mark.others
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


@pytest.fixture(params=["client_secret_basic", "client_secret_post"])
def authlib(request: pytest.FixtureRequest, application: Application) -> Iterator[AuthlibSession]:
    """Authlib's client, in both of its ways to authenticate."""
    with AuthlibSession(
        application.client_id,
        application.client_secret,
        token_endpoint_auth_method=request.param,
        scope=ALL_SCOPES,
        redirect_uri=REDIRECT_URI,
        code_challenge_method="S256",
        token_endpoint=f"{application.sandbox.origin}/oauth2/token",
    ) as session:
        yield session


def test_authlibs_client(sandbox: Sandbox, person: Person, authlib: AuthlibSession) -> None:
    """Signs in with PKCE, reads, refreshes, and is told about a spent token."""
    address, state = authlib.create_authorization_url(
        f"{sandbox.origin}/oauth2/auth", code_verifier=VERIFIER
    )
    came = callback(sandbox, person, address)
    token = authlib.fetch_token(authorization_response=came, state=state, code_verifier=VERIFIER)
    assert token["token_type"] == "Bearer"
    profile = authlib.get(f"{sandbox.api}/users/me/profile").json()
    assert profile["data"]["id"] == person.user_id
    newer = authlib.refresh_token()
    assert newer["refresh_token"] != token["refresh_token"]
    with pytest.raises(OAuthError, match="invalid_grant"):
        authlib.refresh_token(refresh_token=token["refresh_token"])


def test_requests_oauthlib(sandbox: Sandbox, application: Application, person: Person) -> None:
    """Signs in with PKCE, reads and refreshes."""
    session = OAuth2Session(
        application.client_id,
        redirect_uri=REDIRECT_URI,
        scope=ALL_SCOPES.split(),
        pkce="S256",
    )
    with session:
        address, _state = session.authorization_url(f"{sandbox.origin}/oauth2/auth")
        came = callback(sandbox, person, address)
        token_url, secret = f"{sandbox.origin}/oauth2/token", application.client_secret
        token = session.fetch_token(
            token_url, authorization_response=came, client_secret=secret, include_client_id=True
        )
        assert set(token["scope"]) == set(ALL_SCOPES.split())
        kyc = session.get(f"{sandbox.api}/users/{person.user_id}/kyc").json()
        assert kyc["data"]["status"] == "verified"
        newer = session.refresh_token(
            token_url, client_id=application.client_id, client_secret=secret
        )
        assert newer["access_token"] != token["access_token"]


def test_social_auth(sandbox: Sandbox, person: Person) -> None:
    """A Django site with python-social-auth signs the person in."""
    site = Application(sandbox, redirect_uris=["http://testserver/complete/sandbox/"])
    given = {
        "origin": sandbox.origin, "client_id": site.client_id,
        "client_secret": site.client_secret, "user_id": person.user_id,
    }  # fmt: skip
    env = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.others.social_site"],
        input=json.dumps(given), capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "landed": "/done/", "email": person.account["email"], "uid": person.user_id,
    }  # fmt: skip


@pytest.mark.parametrize(
    "switches", [{}, {"decoys": 7}, {"claims_iat": False}, {"claim_values": "bare"}]
)
def test_sd_jwt_of_pypi_verifies_the_credentials(
    sandbox: Sandbox, application: Application, person: Person, switches: dict[str, Any]
) -> None:
    """With the published keys; it finds every claim."""
    sandbox.control("POST", "switches", **switches)
    tokens = person.tokens_for(application)
    path = f"/api/v1/users/{person.user_id}/claims"
    credential = sandbox.client.get(path, headers=bearer(tokens)).json()["data"]["credential"]
    keys = sandbox.client.get("/.well-known/jwks.json").json()["keys"]

    def key_of(issuer: str, header: dict[str, Any]) -> JWK:
        assert issuer == sandbox.origin
        return JWK(**next(key for key in keys if key["kid"] == header["kid"]))

    read = SDJWTVerifier(credential, key_of).get_verified_payload()
    assert read["sub"] == person.user_id
    assert {"kyc_verified", "age_over_18", "country_resident", "unique_human"} <= set(read)
