"""``@sd-jwt/core`` against the sandbox: a verifier of its credentials, in Node."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.driver import Application, Person

HERE = Path(__file__).parent
pytestmark = pytest.mark.integration


def verified(credential: str, jwks: dict[str, Any]) -> dict[str, Any]:
    given = json.dumps({"credential": credential, "jwks": jwks})
    command = ["node", str(HERE / "verify.mjs")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.mark.parametrize("switches", [{}, {"claims_iat": False, "claim_values": "bare"}])
def test_sd_jwt_of_npm_verifies_the_credentials(
    application: Application, person: Person, switches: dict[str, Any]
) -> None:
    """Header, payload and every disclosed claim; and nothing that was changed."""
    application.sandbox.switch(**switches)
    answer = person.read(person.tokens_for(application), "claims")
    credential = answer.json()["data"]["credential"]
    jwks = application.sandbox.client.get("/.well-known/jwks.json").json()
    read = verified(credential, jwks)
    assert (read["header"]["alg"], read["header"]["typ"]) == ("ES256", "dc+sd-jwt")
    payload = read["payload"]
    assert (payload["sub"], payload["aud"]) == (person.user_id, application.client_id)
    assert {"kyc_verified", "age_over_18", "country_resident", "unique_human"} <= payload.keys()
    head, body, rest = credential.split(".", 2)
    swapped = ("B" if rest[0] == "A" else "A") + rest[1:]
    with pytest.raises(ValueError, match=r"(?i)verif|signature"):
        verified(f"{head}.{body}.{swapped}", jwks)
