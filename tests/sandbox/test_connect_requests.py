"""POST /connect/request: bodies, credentials and methods that are refused, and what is logged."""

import hashlib
from typing import Any

import httpx
import pytest

from tests.sandbox.connect_driver import (
    BOTH_SCOPES,
    codes_of,
    connect,
    make_code,
    redeem,
    refusal,
)
from tests.sandbox.driver import Application, Person, Sandbox


def test_retired_result_address_is_gone(sandbox: Sandbox) -> None:
    """There is nothing to poll."""
    answer = sandbox.client.get("/api/v1/connect/result/req_1")
    assert refusal(answer) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": None},
        {"scopes": "profile:basic kyc:status"},
        {"scopes": []},
        {"scopes": ["profile:basic", 1]},
        {"callback_url": 1},
        {"callback_url": "not an address"},
        {"callback_url": "javascript:alert(1)"},
        {"callback_url": "http://[broken"},
        {"callback_url": "https://a.example/" + "x" * 2000},
    ],
)
def test_unusable_request_leaves_the_code_valid(
    application: Application, person: Person, change: dict[str, Any]
) -> None:
    """A request that cannot be read is refused before any code is looked at."""
    code = make_code(person)
    body = {"connect_code": code, "scopes": BOTH_SCOPES} | change
    assert refusal(connect(application, body)) == (400, "INVALID_REQUEST")
    assert codes_of(person) == ["valid"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'"x"', b"{", b"\xff", b"[" * 100_000, b"connect_code=CNX-AAAA-0000"]
)
def test_body_that_is_no_object(application: Application, content: bytes) -> None:
    """Anything but a JSON object is a plain refusal."""
    answer = connect(application, content)
    assert refusal(answer) == (400, "INVALID_REQUEST")


def test_oversized_body_is_refused(application: Application) -> None:
    """A body of megabytes is refused, not read."""
    answer = connect(application, b'{"connect_code": "' + b"A" * 3_000_000 + b'"}')
    assert refusal(answer) == (400, "INVALID_REQUEST")


def test_callback_url_is_taken(application: Application, person: Person) -> None:
    """An address may be sent along; it changes nothing."""
    body = {
        "connect_code": make_code(person),
        "scopes": BOTH_SCOPES,
        "callback_url": "https://shop.example/back?x=1",
    }
    assert connect(application, body).status_code == 200


def test_wrong_credentials_leave_the_code_valid(application: Application, person: Person) -> None:
    """Who is not known gets a challenge and touches no code."""
    code = make_code(person)
    body = {"connect_code": code, "scopes": BOTH_SCOPES}
    url = f"{application.sandbox.api}/connect/request"
    good = httpx.BasicAuth(application.client_id, application.client_secret)
    encoded = httpx.Request("POST", url)
    encoded = next(good.auth_flow(encoded))
    headers = [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic eA=="},
        {"Authorization": encoded.headers["Authorization"].replace("Basic", "Bearer")},
        {"Authorization": encoded.headers["Authorization"][:-8]},
    ]
    for header in headers:
        answer = httpx.post(url, json=body, headers=header)
        assert refusal(answer) == (401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="clients", charset="UTF-8"'
    lower = {"Authorization": encoded.headers["Authorization"].replace("Basic", "basic")}
    assert httpx.post(url, json=body, headers=lower).status_code == 200


def test_other_secrets_are_refused(sandbox: Sandbox, application: Application) -> None:
    """A secret of the other environment, or of another application, is a wrong one."""
    body = {"connect_code": "CNX-AAAA-0000", "scopes": BOTH_SCOPES}
    for other in (application.registration["live"], Application(sandbox).registration["test"]):
        auth = (application.client_id, other["client_secret"])
        answer = sandbox.client.post("/api/v1/connect/request", json=body, auth=auth)
        assert refusal(answer) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("secret", ["a:b::c", "pässwörd-€-秘密", ":", " leading and trailing "])
def test_secret_can_be_any_text(sandbox: Sandbox, person: Person, secret: str) -> None:
    """Colons, spaces and UTF-8 are part of the secret (RFC 7617)."""
    application = Application(sandbox, client_secrets={"test": secret})
    assert application.client_secret == secret
    assert redeem(application, make_code(person)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods_are_refused(sandbox: Sandbox, method: str) -> None:
    """The endpoint takes POST."""
    answer = sandbox.client.request(method, "/api/v1/connect/request")
    assert refusal(answer) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["Allow"] == "POST"


def test_request_log_shows_the_request_without_its_code(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code sent twice can be seen to be the same, and cannot be read."""
    code = make_code(person)
    sandbox.control("DELETE", "requests")
    for _ in range(2):
        redeem(application, code)
    log = sandbox.control("GET", "requests")
    assert [(entry["endpoint"], entry["status"]) for entry in log] == [
        ("connect", 200),
        ("connect", 400),
    ]
    digest = "sha256:" + hashlib.sha256(code.encode()).hexdigest()[:16]
    assert [entry["form"] for entry in log] == [
        {"connect_code": digest, "scopes": BOTH_SCOPES},
    ] * 2
    for secret in (code, application.client_secret):
        assert secret not in str(log)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("connect-codes", {}, 404),
        ("connect-codes", {"user_id": "nobody"}, 404),
        ("connect-codes", {"user_id": 1}, 400),
        ("applications/{app_id}/connect-policy", {"kyc_level": "level_9"}, 400),
        ("applications/{app_id}/connect-policy", {"proof_of_address": "yes"}, 400),
        ("applications/00000000-0000-4000-8000-000000000000/connect-policy", {}, 404),
        ("users/{user_id}/proof-of-address", {"proved": 1}, 400),
        ("applications", {"redirect_uris": ["http://a/"], "client_secrets": []}, 400),
        ("applications", {"redirect_uris": ["http://a/"], "client_secrets": {"test": 1}}, 400),
        ("switches", {"connect_signature": "none"}, 400),
    ],
)
def test_unusable_control_request_is_explained(
    application: Application, person: Person, path: str, body: dict[str, Any], status: int
) -> None:
    """A control request that cannot be followed says why."""
    filled = path.format(app_id=application.registration["app_id"], user_id=person.user_id)
    answer = application.sandbox.client.post(f"/sandbox/{filled}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
