"""Sends Connect requests as an application's backend would."""

import json
from collections.abc import Sequence
from typing import Any

import httpx

from tests.sandbox.driver import Application, Person

BOTH_SCOPES = ["profile:basic", "kyc:status"]


def make_code(person: Person) -> str:
    """Make a code for the person without a browser."""
    made = person.sandbox.control("POST", "connect-codes", user_id=person.user_id)
    assert made["state"] == "valid"
    return str(made["code"])


def codes_of(person: Person) -> list[str]:
    """Return the states of the person's codes, the newest first."""
    codes = person.sandbox.control("GET", f"users/{person.user_id}/connect-codes")
    return [code["state"] for code in codes]


def policy(application: Application, **required: object) -> None:
    """Set what the application requires."""
    path = f"applications/{application.registration['app_id']}/connect-policy"
    assert application.sandbox.control("POST", path, **required).items() >= required.items()
    assert application.sandbox.control("GET", path).items() >= required.items()


def connect(application: Application, body: dict[str, Any] | bytes) -> httpx.Response:
    """Send a Connect request with any body."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return application.sandbox.client.post(
        "/api/v1/connect/request",
        content=content,
        headers={"Content-Type": "application/json"},
        auth=(application.client_id, application.client_secret),
    )


def redeem(
    application: Application, code: str, *, scopes: Sequence[str] = tuple(BOTH_SCOPES)
) -> httpx.Response:
    """Redeem a code."""
    return connect(application, {"connect_code": code, "scopes": list(scopes)})


def refusal(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of an error in the envelope."""
    body = response.json()
    assert body["success"] is False
    return response.status_code, body["error"]["code"]
