"""POST /developer/apps/:appId/rotate-secret and POST /developer/test-users."""

import httpx
import pytest

from tests.sandbox.driver import Person, Sandbox, refusal

NOBODY = "00000000-0000-0000-0000-000000000000"


def ask(
    sandbox: Sandbox, path: str, body: object = None, token: str = ""
) -> httpx.Response:
    """Send a request as the developer, or with another token."""
    headers = {"Authorization": f"Bearer {token or sandbox.portal_token}"}
    return sandbox.client.post(f"/api/v1/developer/{path}", json=body, headers=headers)


@pytest.mark.parametrize("mode", ["test", "live"])
def test_rotated_secret_replaces_the_old_one(sandbox, application, mode):
    """The answer holds the new secret of that mode, and the old one is void. No mode, no secret."""
    person = Person(sandbox, environment=mode, verified=True)
    application.use(mode)
    code, pkce = person.approve(application)
    path = f"apps/{application.app_id}/rotate-secret"
    for unusable in ({"mode": "both"}, {"mode": ""}, {}):
        assert refusal(ask(sandbox, path, unusable)) == (400, "INVALID_REQUEST")
    answer = ask(sandbox, path, {"mode": mode})
    issued = answer.json()["data"]
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert set(issued) == {"mode", "clientId", "clientSecret"}
    assert (issued["mode"], issued["clientId"]) == (mode, application.client_id)
    assert application.redeem(code, pkce).status_code == 401
    application.client_secret = issued["clientSecret"]
    assert application.redeem(code, pkce).status_code == 200
    application.use("live" if mode == "test" else "test")
    # The other mode keeps its secret.
    assert application.refresh("x").status_code == 400


def test_test_user_can_sign_in(sandbox, application):
    """The made person is a sandbox user with the password of the answer."""
    answer = ask(sandbox, "test-users", {"appId": application.app_id})
    made = answer.json()["data"]
    assert (answer.status_code, set(made)) == (201, {"userId", "email", "password"})
    person = Person(sandbox, {**made, "user_id": made["userId"]})
    assert made["email"] in person.sign_in().text
    shown = person.shown()
    assert (shown["environment"], shown["kyc_status"]) == ("test", "unverified")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("apps/{app}/rotate-secret", {"mode": "both"}, 400),
        ("apps/{app}/rotate-secret", {"mode": ["test"]}, 400),
        ("apps/{app}/rotate-secret", [], 400),
        (f"apps/{NOBODY}/rotate-secret", {"mode": "test"}, 404),
        ("apps/x/rotate-secret", {"mode": "test"}, 404),
        ("test-users", {}, 400),
        ("test-users", {"appId": 1}, 400),
        ("test-users", {"appId": "x"}, 404),
        ("test-users", {"appId": NOBODY}, 404),
    ],
)
def test_an_unusable_request_is_refused_in_the_envelope(
    sandbox, application, path, body, status
):
    """The envelope says what is wrong."""
    answer = ask(sandbox, path.format(app=application.app_id), body)
    code = {400: "INVALID_REQUEST", 404: "NOT_FOUND"}[status]
    assert refusal(answer) == (status, code)


@pytest.mark.parametrize("path", ["apps/x/rotate-secret", "test-users"])
def test_session_token_is_required(application, person, path):
    """Nothing else opens the endpoints: no user's token, no client's secret, no Basic."""
    tokens, sandbox = person.tokens_for(application), application.sandbox
    for token in ("x", "x" * 5000, tokens["access_token"], application.client_secret):
        refused = ask(sandbox, path, {}, token)
        assert refusal(refused) == (401, "UNAUTHORIZED")
        assert "Bearer" in refused.headers["WWW-Authenticate"]
    by_password = {"auth": ("x", sandbox.portal_token)}
    basic = httpx.post(f"{sandbox.api}/developer/{path}", **by_password)
    assert basic.status_code == 401
