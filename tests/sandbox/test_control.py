"""The control API: faults, the request log, refusals."""

import hashlib
import time

import httpx
import pytest

from tests.sandbox.driver import Application, Person, Sandbox, bearer

JWKS = "/.well-known/jwks.json"


def test_status_fault_strikes_as_often_as_ordered(sandbox: Sandbox) -> None:
    """A fault for two requests hits two, with its body and headers."""
    sandbox.control(
        "POST",
        "faults",
        kind="status",
        endpoint="jwks",
        times=2,
        status=503,
        body="<h1>down</h1>",
        headers={"Content-Type": "text/html"},
    )
    answers = [sandbox.client.get(JWKS) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].text == "<h1>down</h1>"
    assert answers[0].headers["Content-Type"] == "text/html"


def test_fault_without_end_strikes_until_cancelled(sandbox: Sandbox) -> None:
    """``times`` null lasts, and touches only what it names."""
    ordered = sandbox.control("POST", "faults", kind="status", path="/.well-known/", times=None)
    assert [sandbox.client.get(JWKS).status_code for _ in range(3)] == [500] * 3
    assert sandbox.client.get("/account/sign-in").status_code == 200
    assert sandbox.control("DELETE", f"faults/{ordered['id']}") == []
    assert sandbox.client.get(JWKS).status_code == 200


def test_rate_limit_names_when_to_come_back(sandbox: Sandbox) -> None:
    """A 429 carries Retry-After and the envelope."""
    sandbox.control("POST", "faults", kind="rate_limit", endpoint="jwks", retry_after=7)
    answer = sandbox.client.get(JWKS)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.json()["error"]["code"] == "RATE_LIMITED"


def test_malformed_body_is_not_json(sandbox: Sandbox) -> None:
    """A malformed answer is a 200 that breaks off."""
    sandbox.control("POST", "faults", kind="malformed", endpoint="jwks")
    answer = sandbox.client.get(JWKS)
    assert answer.status_code == 200
    with pytest.raises(ValueError, match="Expecting"):
        answer.json()


@pytest.mark.parametrize("kind", ["drop", "drop_midway"])
def test_dropped_connection(sandbox: Sandbox, kind: str) -> None:
    """The connection ends before or in the middle of the answer, and the next request works."""
    sandbox.control("POST", "faults", kind=kind, endpoint="jwks")
    with pytest.raises(httpx.RemoteProtocolError):
        sandbox.client.get(JWKS)
    assert sandbox.client.get(JWKS).status_code == 200


def test_answer_lost_after_the_service_acted(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A drop *after* rotates the refresh token, whose answer nobody gets."""
    tokens = person.tokens_for(application)
    sandbox.control("POST", "faults", kind="drop", endpoint="token", when="after")
    with pytest.raises(httpx.RemoteProtocolError):
        application.refresh(tokens["refresh_token"])
    assert application.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_request_lost_before_the_service_acted(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A drop *before* leaves the refresh token unspent."""
    tokens = person.tokens_for(application)
    sandbox.control("POST", "faults", kind="drop", endpoint="token")
    with pytest.raises(httpx.RemoteProtocolError):
        application.refresh(tokens["refresh_token"])
    assert application.refresh(tokens["refresh_token"]).status_code == 200


def test_delay_and_slow_body(sandbox: Sandbox) -> None:
    """The answer comes late, or a byte at a time, and is whole in the end."""
    for fault in ({"kind": "delay", "seconds": 0.3}, {"kind": "slow", "seconds": 0.001}):
        sandbox.control("POST", "faults", endpoint="jwks", **fault)
        started = time.monotonic()
        assert sandbox.client.get(JWKS).json()["keys"]
        assert time.monotonic() - started >= 0.2


def test_request_log_shows_a_token_presented_twice(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Secrets are kept as digests, so that a repeat can be counted and nothing leaks."""
    tokens = person.tokens_for(application)
    sandbox.control("DELETE", "requests")
    for _ in range(2):
        application.refresh(tokens["refresh_token"])
    sandbox.client.get("/api/v1/users/me/kyc", headers=bearer(tokens))
    log = sandbox.control("GET", "requests")
    digest = "sha256:" + hashlib.sha256(tokens["refresh_token"].encode()).hexdigest()[:16]
    assert [entry["form"].get("refresh_token") for entry in log] == [digest, digest, None]
    assert [entry["status"] for entry in log] == [200, 400, 401]
    assert [entry["endpoint"] for entry in log] == ["token", "token", "kyc"]
    for secret in (*tokens.values(), application.client_secret):
        assert str(secret) not in str(log) or secret in {"Bearer", 3600}


def test_clock_can_be_set_and_reset(sandbox: Sandbox) -> None:
    """The clock takes a moment, runs on from it, and returns to real time."""
    moved = sandbox.control("POST", "clock", set="2031-02-03T04:05:06Z")
    assert moved["now"].startswith("2031-02-03T04:05:0")
    assert sandbox.control("POST", "clock", reset=True)["offset_seconds"] == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("clock", {"set": "tomorrow"}),
        ("clock", {"set": "2031-02-03T04:05:06"}),
        ("clock", {}),
        ("switches", {"token_subject": "email"}),
        ("switches", {"decoys": True}),
        ("switches", {"unknown": 1}),
        ("faults", {"kind": "flood"}),
        ("applications", {"name": "No address"}),
        ("users", {"environment": "staging"}),
        ("users", {"email": 1}),
    ],
)
def test_unusable_request_is_explained(
    sandbox: Sandbox, path: str, body: dict[str, object]
) -> None:
    """A control request that cannot be followed is a 400 that says why."""
    answer = sandbox.client.post(f"/sandbox/{path}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_taken_address_is_refused(sandbox: Sandbox, person: Person) -> None:
    """Two accounts cannot share an e-mail address."""
    answer = sandbox.client.post("/sandbox/users", json={"email": person.account["email"]})
    assert answer.status_code == 400


def test_web_page_cannot_control_the_sandbox(sandbox: Sandbox) -> None:
    """A request from a page in the browser carries an origin and is refused."""
    answer = sandbox.client.post(
        "/sandbox/keys/rotate", headers={"Origin": "https://attacker.example"}
    )
    assert answer.status_code == 403


def test_control_requests_are_not_logged(sandbox: Sandbox) -> None:
    """The log holds what the service received and nothing else."""
    sandbox.control("DELETE", "requests")
    sandbox.control("GET", "health")
    assert sandbox.control("GET", "requests") == []
