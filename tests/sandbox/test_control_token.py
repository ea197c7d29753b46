"""With a control token the control API takes that token alone, wherever a request comes from."""

from collections.abc import Iterator

import pytest

from tests.sandbox.driver import Sandbox

pytestmark = pytest.mark.processes

TOKEN = "a-token-for-control-alone"


class ControlledSandbox(Sandbox):
    """A sandbox whose control client sends the token."""

    def __init__(self, *options: str) -> None:
        super().__init__(*options)
        self.client.headers["Authorization"] = f"Bearer {TOKEN}"


@pytest.fixture(scope="module")
def controlled() -> Iterator[Sandbox]:
    with ControlledSandbox("--control-token", TOKEN) as sandbox:
        yield sandbox


def test_the_token_controls_it(controlled: Sandbox) -> None:
    """Also from elsewhere: a container, a proxy."""
    assert controlled.control("GET", "health") == {"status": "ready"}
    elsewhere = {"X-Forwarded-For": "203.0.113.9"}
    assert controlled.client.get("/sandbox/health", headers=elsewhere).status_code == 200


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_nothing_else_does(controlled: Sandbox, sent: str) -> None:
    """Not even a request of this machine."""
    refused = controlled.client.get("/sandbox/health", headers={"Authorization": sent})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")


def test_the_portal_s_token_does_not(controlled: Sandbox) -> None:
    """Each token opens its own door."""
    headers = {"Authorization": f"Bearer {controlled.portal_token}"}
    assert controlled.client.get("/sandbox/health", headers=headers).status_code == 403
    made = controlled.client.post("/api/v1/developer/test-users", json={})
    assert made.status_code == 401


def test_both_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a container's command line shows neither."""
    monkeypatch.setenv("IDENTITY_SANDBOX_CONTROL_TOKEN", TOKEN)
    monkeypatch.setenv("IDENTITY_SANDBOX_PORTAL_TOKEN", "a-token-for-the-portal")
    with ControlledSandbox() as sandbox:
        assert sandbox.portal_token == "a-token-for-the-portal"
        assert sandbox.control("GET", "health") == {"status": "ready"}
        assert sandbox.client.get("/sandbox/health", headers={"Authorization": ""}).is_error
