"""Node programs against the sandbox: a receiver of its webhooks, a verifier of its credentials."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.driver import Application, Person, Sandbox, bearer

HERE = Path(__file__).parent
SECRET = "a-webhook-secret-for-tests-alone"
pytestmark = pytest.mark.others


class Receiver:
    """The receiver's process, and what it said of each delivery."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{self.heard()['port']}/"

    def heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told


@contextmanager
def receiver(secret: str = SECRET) -> Iterator[Receiver]:
    command = ["node", str(HERE / "receiver.mjs"), secret]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Receiver(process)
        finally:
            process.terminate()


@pytest.mark.parametrize("form", ["compact", "indented"])
def test_a_node_receiver_takes_the_webhooks(
    sandbox: Sandbox, application: Application, person: Person, form: str
) -> None:
    """It checks the signature over the raw bytes; letters of any alphabet included."""
    sandbox.control("POST", "switches", event_json=form)
    with receiver() as node:
        application.receive_at(node.url, secret=SECRET)
        person.consent_to(application)
        heard = node.heard()
        assert heard["good"] is True
        assert heard["event"]["event_type"] == "consent.granted"
        sandbox.control(
            "POST", "events", client_id=application.client_id, event_type="claim.issued",
            user_id="Ünïcödé 😀", data={"claim_type": "vérifié"},
        )  # fmt: skip
        heard = node.heard()
        assert heard["good"] is True
        assert heard["event"]["data"]["user_id"] == "Ünïcödé 😀"


def test_a_node_receiver_refuses_another_secret(application: Application, person: Person) -> None:
    """So that the test above proves something."""
    with receiver("another-secret") as node:
        application.receive_at(node.url, secret=SECRET)
        person.consent_to(application)
        assert node.heard() == {"good": False, "event": None}


def verified(credential: str, jwks: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        ["node", str(HERE / "verify.mjs")],
        input=json.dumps({"credential": credential, "jwks": jwks}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr)
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.mark.parametrize(
    "switches",
    [{}, {"decoys": 7}, {"claims_iat": False}, {"claim_values": "bare", "decoys": 1}],
    ids=["as specified", "decoys", "no iat", "bare values"],
)
def test_sd_jwt_of_npm_verifies_the_credentials(
    sandbox: Sandbox, application: Application, person: Person, switches: dict[str, Any]
) -> None:
    """Header, payload and every disclosed claim; and nothing that was changed."""
    sandbox.control("POST", "switches", **switches)
    tokens = person.tokens_for(application)
    path = f"/api/v1/users/{person.user_id}/claims"
    credential = sandbox.client.get(path, headers=bearer(tokens)).json()["data"]["credential"]
    jwks = sandbox.client.get("/.well-known/jwks.json").json()
    read = verified(credential, jwks)
    assert (read["header"]["alg"], read["header"]["typ"]) == ("ES256", "dc+sd-jwt")
    assert read["payload"]["sub"] == person.user_id
    assert read["payload"]["aud"] == application.client_id
    assert {"kyc_verified", "age_over_18", "country_resident", "unique_human"} <= set(
        read["payload"]
    )
    head, payload, rest = credential.split(".", 2)
    swapped = ("B" if rest[0] == "A" else "A") + rest[1:]
    with pytest.raises(ValueError, match=r"(?i)verif|signature"):
        verified(f"{head}.{payload}.{swapped}", jwks)
