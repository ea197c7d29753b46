"""``identity_rotate_secret`` and ``identity_create_test_user``, against the sandbox."""

import io
from collections.abc import Iterator

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_identity.testing.sandbox import RunningSandbox
from tests.fake_service import FakeService, http

APP = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def sandbox(identity_sandbox: RunningSandbox) -> RunningSandbox:
    return identity_sandbox


@pytest.fixture
def registered(
    sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, dict[str, str]]]:
    """An application at the sandbox, the site's settings for it, the developer's token."""
    made = sandbox.control("POST", "applications", redirect_uris=["http://testserver/back"])
    monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", sandbox.portal_token)
    with site_of(sandbox, made):
        yield made


def site_of(sandbox: RunningSandbox, made: dict[str, dict[str, str]]) -> override_settings:
    settings = {
        "ENVIRONMENT": "test",
        "BASE_URL": sandbox.base_url,
        "AUTH_URL": sandbox.auth_url,
        "CLIENT_ID": made["test"]["client_id"],
        "CLIENT_SECRET": made["test"]["client_secret"],
    }
    return override_settings(DJANGO_IDENTITY={"default": settings})


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def connect_status(sandbox: RunningSandbox, client_id: str, secret: str) -> int:
    """How the service takes these credentials: 401, or a plain no to the code."""
    answer = httpx.post(
        f"{sandbox.base_url}/connect/request",
        json={"connect_code": "CNX-AAAA-0000", "scopes": ["kyc:status"]},
        auth=(client_id, secret),
        trust_env=False,
    )
    return answer.status_code


def test_the_new_secret_alone_is_printed(
    sandbox: RunningSandbox, registered: dict[str, dict[str, str]]
) -> None:
    """Standard output holds nothing else, for a pipe; the old secret is void, the new one good."""
    out, err = run("identity_rotate_secret", str(registered["app_id"]), "--yes")
    secret, client_id = out.removesuffix("\n"), registered["test"]["client_id"]
    assert secret not in err
    assert "not of the application" not in err
    assert secret != registered["test"]["client_secret"]
    assert connect_status(sandbox, client_id, registered["test"]["client_secret"]) == 401
    assert connect_status(sandbox, client_id, secret) == 400
    live = registered["live"]
    assert connect_status(sandbox, live["client_id"], live["client_secret"]) == 400


def test_another_applications_secret_is_said_to_be_so(
    sandbox: RunningSandbox, registered: dict[str, dict[str, str]]
) -> None:
    """The id in the portal is not of the site's application: no secret is printed anywhere."""
    other = sandbox.control("POST", "applications", redirect_uris=["http://other/back"])
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="not of the application 'default'") as refused:
        call_command(
            "identity_rotate_secret", str(other["app_id"]), "--yes", stdout=out, stderr=err
        )
    assert (refused.value.returncode, out.getvalue()) == (1, "")
    assert other["test"]["client_id"] in str(refused.value)


def test_it_asks_first(
    registered: dict[str, dict[str, str]],
    sandbox: RunningSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anything but the environment's name is a no."""
    monkeypatch.setattr("builtins.input", lambda _prompt: "yes")
    with pytest.raises(CommandError, match="Nothing was done"):
        run("identity_rotate_secret", str(registered["app_id"]))
    held = registered["test"]
    assert connect_status(sandbox, held["client_id"], held["client_secret"]) == 400
    monkeypatch.setattr("builtins.input", lambda _prompt: "test")
    run("identity_rotate_secret", str(registered["app_id"]))
    assert connect_status(sandbox, held["client_id"], held["client_secret"]) == 401


@pytest.mark.parametrize("command", ["identity_rotate_secret", "identity_create_test_user"])
@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("wrong-token", "access_token_rejected"),
        ("two words", "no session token"),
        (None, "service_refusal"),
    ],
)
def test_what_the_service_says_no_to(
    registered: dict[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    token: str | None,
    told: str,
) -> None:
    """A code and the endpoint's name; the token itself is not shown."""
    if token is not None:
        monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", token)
    asked = ["--yes"] if command == "identity_rotate_secret" else []
    with pytest.raises(CommandError, match=told) as raised:
        run(command, APP, *asked)
    assert (token or "wrong-token") not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [http(b"oops", status="500 Oops"), http(b'{"success": true, "data": {"mode": "test"}}')],
)
def test_doubt_is_told(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """Where nobody can tell whether the secret was changed, it says so; it is sent once."""
    monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", "a-token")
    service.answers["rotate-secret"] = answer
    with pytest.raises(CommandError, match="If sign-ins fail now"):
        run("identity_rotate_secret", APP, "--yes")
    assert service.calls("rotate-secret") == 1


def test_a_test_user_can_sign_in(
    sandbox: RunningSandbox, registered: dict[str, dict[str, str]]
) -> None:
    """What is printed is somebody at the service."""
    out, _ = run("identity_create_test_user", str(registered["app_id"]))
    told = dict(line.rsplit("  ", 1) for line in out.splitlines())
    made = {name.strip(): value for name, value in told.items()}
    assert set(made) == {"user id", "e-mail", "password"}
    shown = sandbox.control("GET", f"users/{made['user id']}")
    assert (shown["email"], shown["environment"]) == (made["e-mail"], "test")


def test_a_live_application_has_no_test_users(
    sandbox: RunningSandbox, registered: dict[str, dict[str, str]]
) -> None:
    """Live and test are never mixed."""
    live = {
        "ENVIRONMENT": "live", "BASE_URL": "https://service.example/api/v1",
        "AUTH_URL": "https://service.example", "CLIENT_ID": "x",
        "CLIENT_SECRET": "a-client-secret-for-tests-alone",
    }  # fmt: skip
    with (
        override_settings(DJANGO_IDENTITY={"default": live}),
        pytest.raises(CommandError, match="live"),
    ):
        run("identity_create_test_user", str(registered["app_id"]))
