"""POST /developer/apps/:appId/rotate-secret and POST /developer/test-users."""

from typing import Any

import httpx
import pytest

from tests.sandbox.driver import Application, Person, Sandbox

NOBODY = "00000000-0000-0000-0000-000000000000"


def ask(
    sandbox: Sandbox, path: str, body: object = None, *, token: str | None = None
) -> httpx.Response:
    """Send a request as the developer, or with another token."""
    bearer = f"Bearer {sandbox.portal_token if token is None else token}"
    return sandbox.client.post(
        f"/api/v1/developer/{path}", json=body, headers={"Authorization": bearer}
    )


@pytest.mark.parametrize("mode", ["test", "live"])
def test_rotated_secret_replaces_the_old_one(
    sandbox: Sandbox, application: Application, mode: str
) -> None:
    """The answer holds the new secret of that mode, and the old one is void."""
    person = Person(sandbox, environment=mode, verified=True)
    application.use(mode)
    code, pkce = person.approve(application)
    app_id = application.registration["app_id"]
    answer = ask(sandbox, f"apps/{app_id}/rotate-secret", {"mode": mode})
    issued = answer.json()["data"]
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    assert (issued["mode"], issued["clientId"]) == (mode, application.client_id)
    assert set(issued) == {"mode", "clientId", "clientSecret"}
    assert application.redeem(code, pkce).status_code == 401
    application.client_secret = issued["clientSecret"]
    assert application.redeem(code, pkce).status_code == 200


def test_tokens_outlive_the_secret(sandbox: Sandbox, application: Application) -> None:
    """Rotating ends no consent: with the new secret a refresh token is good."""
    tokens = Person(sandbox, verified=True).tokens_for(application)
    app_id = application.registration["app_id"]
    issued = ask(sandbox, f"apps/{app_id}/rotate-secret", {"mode": "test"}).json()["data"]
    application.client_secret = issued["clientSecret"]
    assert application.refresh(tokens["refresh_token"]).status_code == 200


def test_test_user_can_sign_in(sandbox: Sandbox, application: Application) -> None:
    """The made person is a sandbox user with the password of the answer."""
    answer = ask(sandbox, "test-users", {"appId": application.registration["app_id"]})
    assert answer.status_code == 201
    made = answer.json()["data"]
    assert set(made) == {"userId", "email", "password"}
    person = Person(sandbox)
    person.account = made
    assert made["email"] in person.sign_in().text
    shown = sandbox.control("GET", f"users/{made['userId']}")
    assert (shown["environment"], shown["kyc_status"]) == ("test", "unverified")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("apps/{app}/rotate-secret", {"mode": "both"}, 400, "INVALID_REQUEST"),
        ("apps/{app}/rotate-secret", {"mode": ["test"]}, 400, "INVALID_REQUEST"),
        ("apps/{app}/rotate-secret", {}, 400, "INVALID_REQUEST"),
        ("apps/{app}/rotate-secret", [], 400, "INVALID_REQUEST"),
        (f"apps/{NOBODY}/rotate-secret", {"mode": "test"}, 404, "NOT_FOUND"),
        ("apps/x/rotate-secret", {"mode": "test"}, 404, "NOT_FOUND"),
        ("test-users", {}, 400, "INVALID_REQUEST"),
        ("test-users", {"appId": 1}, 400, "INVALID_REQUEST"),
        ("test-users", {"appId": "x"}, 404, "NOT_FOUND"),
        ("test-users", {"appId": NOBODY}, 404, "NOT_FOUND"),
    ],
)
def test_request_that_cannot_be_used(
    sandbox: Sandbox, application: Application, path: str, body: Any, status: int, code: str
) -> None:
    """The envelope says what is wrong."""
    address = path.format(app=application.registration["app_id"])
    answer = ask(sandbox, address, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("path", ["apps/x/rotate-secret", "test-users"])
def test_session_token_is_required(
    sandbox: Sandbox, application: Application, person: Person, path: str
) -> None:
    """Nothing else opens the endpoints: no user's token, no client's secret, no cookie."""
    tokens = person.tokens_for(application)
    for token in ("x", "x" * 5000, tokens["access_token"], application.client_secret):
        refused = ask(sandbox, path, {}, token=token)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
        assert "Bearer" in refused.headers["WWW-Authenticate"]
    cookies = {"Cookie": f"sandbox_portal_session={sandbox.portal_token}"}
    refused = httpx.post(f"{sandbox.api}/developer/{path}", json={}, headers=cookies)
    assert refused.status_code == 401
    basic = httpx.post(f"{sandbox.api}/developer/{path}", auth=("x", sandbox.portal_token))
    assert basic.status_code == 401


def test_other_methods_are_refused(sandbox: Sandbox) -> None:
    """POST is the one method."""
    answer = sandbox.client.get("/api/v1/developer/test-users")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.processes
def test_token_can_be_chosen_at_the_start() -> None:
    """A demo knows the token beforehand."""
    with Sandbox("--portal-token", "chosen-token") as sandbox:
        assert sandbox.portal_token == "chosen-token"
        assert ask(sandbox, "test-users", {"appId": NOBODY}).status_code == 404
