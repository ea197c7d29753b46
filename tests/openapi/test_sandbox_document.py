"""``docs/openapi-sandbox.yaml`` describes the sandbox's endpoints as they answer."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis

from django_identity.testing.sandbox import RunningSandbox
from tests.openapi.walk import CALLBACK, access_token

ROOT = Path(__file__).resolve().parents[2]


@cache
def document() -> Any:
    return schemathesis.openapi.from_path(ROOT / "docs" / "openapi-sandbox.yaml")


def test_every_endpoint_is_in_the_document() -> None:
    """By the name that faults and the request log know it by."""
    addresses = (ROOT / "django_identity" / "sandbox" / "urls.py").read_text("utf-8")
    routes = re.findall(r'path\(\s*"([^"]+)".*?name="(\w+)"', addresses, re.DOTALL)
    served = {name for route, name in routes if re.match(r"api/|oauth2/token|\.well-known", route)}
    named = {each.ok().definition.raw["operationId"] for each in document().get_all_operations()}
    assert served == named


@pytest.fixture(scope="module")
def client(identity_running_sandbox: RunningSandbox) -> dict[str, str]:
    made = identity_running_sandbox.control("POST", "applications", redirect_uris=[CALLBACK])
    credentials: dict[str, str] = {**made["test"], "app_id": made["app_id"]}
    return credentials


ANSWERS = [
    ("GET", "/api/v1/users/{user_id}/profile", "bearer", {}, 200),
    ("GET", "/api/v1/users/{user_id}/kyc", "bearer", {}, 200),
    ("GET", "/api/v1/users/{user_id}/claims", "bearer", {}, 200),
    ("GET", "/api/v1/users/{user_id}/documents/metadata", "bearer", {}, 200),
    ("GET", "/api/v1/users/{user_id}/documents", "bearer", {}, 403),
    ("GET", "/api/v1/users/{user_id}/claims", "none", {}, 401),
    ("GET", "/.well-known/jwks.json", "none", {}, 200),
    ("POST", "/api/v1/claims/verify", "none", {}, 401),
    ("POST", "/api/v1/claims/verify", "basic", {"credential": 7}, 400),
    ("POST", "/api/v1/claims/verify", "basic", {"credential": "x.y.z~"}, 200),
    ("POST", "/api/v1/connect/request", "none", {}, 401),
    ("POST", "/api/v1/connect/request", "basic", {}, 400),
    ("POST", "/api/v1/connect/request", "basic", {"connect_code": "{code}",
                                                   "scopes": ["profile:basic", "kyc:status"]}, 200),
    ("POST", "/api/v1/developer/test-users", "none", {}, 401),
    ("POST", "/api/v1/developer/test-users", "portal", {"appId": "{app_id}"}, 201),
    ("POST", "/api/v1/developer/test-users", "portal", {"appId": "{"}, 404),
    ("POST", "/api/v1/developer/apps/{app_id}/rotate-secret", "portal", {"mode": "live"}, 200),
    ("POST", "/api/v1/developer/apps/{app_id}/rotate-secret", "portal", {"mode": 7}, 400),
    ("POST", "/oauth2/token", "none", {}, 400),
    ("PUT", "/oauth2/token", "none", {}, 405),
    ("PUT", "/api/v1/connect/request", "none", {}, 405),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "scheme", "body", "status"), ANSWERS, ids=lambda value: str(value)[:40]
)
def test_an_answer_is_as_the_document_says(
    identity_running_sandbox: RunningSandbox,
    client: dict[str, str],
    method: str,
    path: str,
    scheme: str,
    body: dict[str, Any],
    status: int,
) -> None:
    """Status, content type, headers and members."""
    sandbox = identity_running_sandbox
    code = sandbox.connect_code(sandbox.create_person())
    given = {"code": code, "user_id": "me", "app_id": client["app_id"]}
    secret = f"{client['client_id']}:{client['client_secret']}".encode()
    headers = {
        "bearer": lambda: {"Authorization": f"Bearer {access_token(sandbox, client)}"},
        "basic": lambda: {"Authorization": f"Basic {base64.b64encode(secret).decode()}"},
        "portal": lambda: {"Authorization": f"Bearer {sandbox.portal_token}"},
        "none": dict,
    }[scheme]()
    sent = {
        name: given.get(value.strip("{}"), value) if isinstance(value, str) else value
        for name, value in body.items()
    }
    address = sandbox.auth_url + path.format_map(given)
    with httpx.Client(trust_env=False, headers=headers) as browser:
        answer = browser.request(method, address, json=sent if method == "POST" else None)
    assert answer.status_code == status
    operation = document()[path]["POST" if method == "PUT" else method]
    operation.validate_response(answer)
