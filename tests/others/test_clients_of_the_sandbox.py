"""Clients that are not ours at the sandbox: Authlib, openssl, and ``@sd-jwt/core`` in Node."""

import json
import subprocess
from pathlib import Path

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from tests.sandbox.driver import ALL_SCOPES, REDIRECT_URI
from tests.sandbox.receiver import SECRET, Receiver

pytestmark = pytest.mark.integration
VERIFIER = "a-verifier-of-64-characters-that-nobody-has-to-guess-in-a-test-00"
METHOD = "client_secret_post"
SD_JWT = ["node", str(Path(__file__).parent / "verify.mjs")]


def test_authlib_signs_in_reads_and_refreshes(application, person, monkeypatch):
    # It refuses plain http, also to this machine, unless told otherwise.
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    sandbox = application.sandbox
    with OAuth2Session(
        application.client_id,
        application.client_secret,
        token_endpoint_auth_method=METHOD,
        scope=ALL_SCOPES,
        redirect_uri=REDIRECT_URI,
        code_challenge_method="S256",
        token_endpoint=f"{sandbox.origin}/oauth2/token",
    ) as session:
        address, state = session.create_authorization_url(
            f"{sandbox.origin}/oauth2/auth",
            code_verifier=VERIFIER,
        )
        sent = {
            "authorization_response": person.decide(address).json()["callback"],
            "state": state,
        }
        token = session.fetch_token(**sent, code_verifier=VERIFIER)
        assert token["token_type"] == "Bearer"
        profile = session.get(f"{sandbox.api}/users/me/profile").json()
        assert profile["data"]["id"] == person.user_id
        newer = session.refresh_token()
        assert newer["refresh_token"] != token["refresh_token"]
        with pytest.raises(OAuthError, match="invalid_grant"):
            session.refresh_token(refresh_token=token["refresh_token"])


def test_the_signature_is_openssls(application, person):
    """Lowercase hexadecimal HMAC-SHA-256 of an event's bytes as they came."""
    with Receiver(is_coming=application.sandbox.is_sending) as receiver:
        application.receive_at(receiver.url, secret=SECRET)
        person.consent_to(application)
        receiver.wait_for(1)
    command = ["openssl", "dgst", "-sha256", "-hmac", SECRET]
    done = subprocess.run(
        command,
        input=receiver.requests[0].body,
        capture_output=True,
        check=True,
    )
    signature = receiver.requests[0].headers["x-webhook-signature"]
    assert done.stdout.decode().split()[-1] == signature


@pytest.mark.parametrize(
    "switches",
    [{}, {"claims_iat": False, "claim_values": "bare"}],
)
def test_sd_jwt_of_npm_verifies_the_credentials(application, person, switches):
    """Header, payload and every disclosed claim; and nothing that was changed."""
    application.sandbox.switch(**switches)
    answer = person.read(person.tokens_for(application), "claims")
    credential = answer.json()["data"]["credential"]
    jwks = application.sandbox.client.get("/.well-known/jwks.json").json()

    def verify(text: str) -> subprocess.CompletedProcess[str]:
        given = json.dumps({"credential": text, "jwks": jwks})
        return subprocess.run(
            SD_JWT,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    read = json.loads(verify(credential).stdout)
    assert read["header"]["alg"] == "ES256"
    assert read["header"]["typ"] == "dc+sd-jwt"
    payload = read["payload"]
    assert payload["sub"] == person.user_id
    assert payload["aud"] == application.client_id
    claims = {"kyc_verified", "age_over_18", "country_resident", "unique_human"}
    assert payload.keys() >= claims
    head, body, rest = credential.split(".", 2)
    bent = verify(f"{head}.{body}.{'B' if rest[0] == 'A' else 'A'}{rest[1:]}")
    assert bent.returncode != 0
    assert "signature" in bent.stderr.lower()
