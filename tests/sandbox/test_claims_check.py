"""``POST /claims/verify``: the service's own verdict on a credential."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest

from tests.sandbox.driver import Application, Person, Sandbox, bearer


def ask(application: Application, body: Any, *, secret: str = "") -> httpx.Response:
    return application.sandbox.client.post(
        "/api/v1/claims/verify",
        json=body,
        auth=(application.client_id, secret or application.client_secret),
    )


def verdict(application: Application, credential: str) -> dict[str, Any]:
    answer = ask(application, {"credential": credential})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    assert set(data) == {"valid", "reason", "claims"}
    assert data["valid"] is (data["reason"] is None)
    assert data["valid"] or not data["claims"]
    return data


def credential_of(person: Person, tokens: dict[str, Any]) -> str:
    path = f"/api/v1/users/{person.user_id}/claims"
    data = person.sandbox.client.get(path, headers=bearer(tokens)).json()["data"]
    return str(data["credential"])


@pytest.fixture
def credential(application: Application, person: Person) -> str:
    return credential_of(person, person.tokens_for(application))


@pytest.mark.parametrize("switches", [{}, {"decoys": 5, "claims_iat": False}], ids=["", "other"])
def test_a_good_credential_is_valid(
    sandbox: Sandbox, application: Application, person: Person, switches: dict[str, Any]
) -> None:
    """With the claims that it discloses."""
    sandbox.control("POST", "switches", **switches)
    found = verdict(application, credential_of(person, person.tokens_for(application)))
    assert found["valid"] is True
    assert set(found["claims"]) == {
        "kyc_verified", "age_over_18", "country_resident", "unique_human",
    }  # fmt: skip
    assert found["claims"]["country_resident"]["country"] == "NG"


def test_fewer_disclosures_disclose_fewer_claims(application: Application, credential: str) -> None:
    """Which is what the format is for."""
    token, *disclosures = credential.split("~")[:-1]
    found = verdict(application, "~".join([token, disclosures[0], ""]))
    assert (found["valid"], len(found["claims"])) == (True, 1)


def bent(credential: str, what: str) -> str:
    head, rest = credential.split(".", 1)
    token, *disclosures = credential.split("~")[:-1]
    changed = base64.urlsafe_b64encode(json.dumps(["salt", "age_over_18", True]).encode()).decode()
    return {
        "no text": "",
        "no token": "a.b.c~",
        "no tilde": credential[:-1],
        "a key binding": credential + token,
        "another signature": f"{token[:-6]}AAAAAA~{'~'.join(disclosures)}~",
        "another header": f"e30.{rest}",
        "another payload": f"{head}.e30.{rest.split('.', 1)[1]}",
        "an unlisted disclosure": f"{credential}{changed.rstrip('=')}~",
        "a broken disclosure": f"{credential}!~",
        "the same twice": f"{credential}{disclosures[0]}~",
        "a letter that is none": credential.replace(".", ".ü", 1),
        "huge": "a" * 200_000,
    }[what]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("no text", "malformed"), ("no token", "malformed"), ("no tilde", "malformed"),
        ("a key binding", "malformed"), ("another signature", "signature"),
        ("another header", "malformed"), ("another payload", "signature"),
        ("an unlisted disclosure", "disclosure"), ("a broken disclosure", "malformed"),
        ("the same twice", "malformed"), ("a letter that is none", "malformed"),
        ("huge", "malformed"),
    ],
)  # fmt: skip
def test_a_bad_credential_is_not(
    application: Application, credential: str, what: str, reason: str
) -> None:
    """Whatever it is, an answer with a reason."""
    assert verdict(application, bent(credential, what))["reason"] == reason


def test_it_is_for_its_own_application(
    sandbox: Sandbox, application: Application, credential: str
) -> None:
    """Another one's is refused, and so is one of the other environment."""
    assert verdict(Application(sandbox), credential)["reason"] == "audience"
    application.use("live")
    assert verdict(application, credential)["reason"] == "environment"


def test_time_and_revocation_end_it(
    sandbox: Sandbox, application: Application, person: Person, credential: str
) -> None:
    """A revoked claim is known here before the credential runs out."""
    person.cause("claims/age_over_18/revoke")
    assert verdict(application, credential)["reason"] == "revoked"
    sandbox.control("POST", "clock", advance=24 * 3600)
    assert verdict(application, credential)["reason"] == "expired"


def test_a_withdrawn_key_signs_nothing(
    sandbox: Sandbox, application: Application, credential: str
) -> None:
    """A rotated one does, for a day."""
    kid = sandbox.control("POST", "keys/rotate")["published"][1]
    assert verdict(application, credential)["valid"] is True
    sandbox.control("POST", "keys/withdraw", kid=kid)
    assert verdict(application, credential)["reason"] == "signature"


@pytest.mark.parametrize("body", [{}, [], "x", {"credential": None}, {"credential": ["x"]}])
def test_an_unusable_body_is_refused(application: Application, body: Any) -> None:
    """Before anything is checked."""
    answer = ask(application, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


def test_applications_alone_may_ask(application: Application, credential: str) -> None:
    """By their own credentials, with POST."""
    refused = ask(application, {"credential": credential}, secret="wrong")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    assert refused.headers["WWW-Authenticate"].startswith("Basic")
    assert application.sandbox.client.get("/api/v1/claims/verify").status_code == 405
