"""``identity_rotate_secret`` and ``identity_create_test_user``, against the sandbox."""

import io
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from django_identity.testing.sandbox import RunningSandbox
from tests.commands.run_command import run
from tests.fake_service import FakeService, http
from tests.test_conf import configured

APP = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def registered(
    identity_sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """An application at the sandbox, the site's settings for it, the developer's token."""
    sandbox = identity_sandbox
    made = sandbox.control(
        "POST", "applications", redirect_uris=["http://testserver/back"]
    )
    monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", sandbox.portal_token)
    addresses = {"BASE_URL": sandbox.base_url, "AUTH_URL": sandbox.auth_url}
    client = {
        name.upper(): made["test"][name] for name in ("client_id", "client_secret")
    }
    with configured(**addresses, **client):
        yield made


def is_accepted(
    sandbox: RunningSandbox, client: dict[str, str], secret: str = ""
) -> bool:
    """Whether the service knows the client by the secret: it answers 401, or a no to the code."""
    answer = httpx.post(
        f"{sandbox.base_url}/connect/request",
        json={"connect_code": "CNX-AAAA-0000", "scopes": ["kyc:status"]},
        auth=(client["client_id"], secret or client["client_secret"]),
        trust_env=False,
    )
    assert answer.status_code in (400, 401)
    return answer.status_code == 400


def test_the_new_secret_alone_is_printed(
    identity_sandbox: RunningSandbox, registered: dict[str, Any]
) -> None:
    """Standard output holds nothing else, for a pipe; the old secret is void, the new one good."""
    ran = run("identity_rotate_secret", registered["app_id"], "--yes")
    secret = ran.out.removesuffix("\n")
    assert secret not in ran.err
    assert is_accepted(identity_sandbox, registered["test"], secret)
    assert not is_accepted(identity_sandbox, registered["test"])
    assert is_accepted(identity_sandbox, registered["live"])


def test_another_applications_secret_is_not_printed(
    identity_sandbox: RunningSandbox, registered: dict[str, Any]
) -> None:
    """The id in the portal is not of the site's application: no secret is printed anywhere."""
    other = identity_sandbox.control(
        "POST", "applications", redirect_uris=["http://other/back"]
    )
    ran = run("identity_rotate_secret", other["app_id"], "--yes")
    assert (ran.code, ran.out) == (1, "")
    assert "not of CLIENT_ID" in ran.error
    assert other["test"]["client_id"] in ran.error


def test_a_secret_is_rotated_only_after_a_confirmation(
    registered: dict[str, Any],
    identity_sandbox: RunningSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the environment's name confirms."""
    for typed, is_kept in (("yes", True), ("test", False)):
        monkeypatch.setattr("builtins.input", lambda _prompt, typed=typed: typed)
        ran = run("identity_rotate_secret", registered["app_id"])
        assert ("Nothing was done" in ran.error) is is_kept
        assert is_accepted(identity_sandbox, registered["test"]) is is_kept


@pytest.mark.parametrize(
    "command",
    [
        ("identity_rotate_secret", APP),
        ("identity_erase", "subject-1"),
        ("identity_rotate_keys", "--forget-unreadable"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_under_cron_nobody_answers_a_question(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The command says what to give instead, and does nothing."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert "--yes" in ran.error


@pytest.mark.parametrize(
    "command", [("identity_rotate_secret", "--yes"), ("identity_create_test_user",)]
)
@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("wrong-token", "access_token_rejected"),
        ("two words", "no session token"),
        (None, "service_refusal"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_a_refusal_of_the_service_is_named_without_the_token(
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    token: str | None,
    told: str,
) -> None:
    """A code and the endpoint's name; the token itself is not shown."""
    if token is not None:
        monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", token)
    ran = run(*command, APP)
    assert told in ran.error
    assert (token or "wrong-token") not in ran.error


@pytest.mark.parametrize(
    "answer",
    [
        http(b"oops", status="500 Oops"),
        http(b'{"success": true, "data": {"mode": "test"}}'),
    ],
)
def test_an_unclear_answer_is_explained_and_not_sent_again(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """Where nobody can tell whether the secret was changed, it says so; it is sent once."""
    monkeypatch.setenv("IDENTITY_PORTAL_TOKEN", "a-token")
    service.answers["rotate-secret"] = answer
    assert "If sign-ins fail now" in run("identity_rotate_secret", APP, "--yes").error
    assert service.calls("rotate-secret") == 1


def test_a_test_user_can_sign_in(
    identity_sandbox: RunningSandbox, registered: dict[str, Any]
) -> None:
    """The service knows the person whose data is printed."""
    told = run("identity_create_test_user", registered["app_id"]).out.splitlines()
    made = {
        name.strip(): value for name, value in (line.rsplit("  ", 1) for line in told)
    }
    assert set(made) == {"user id", "e-mail", "password"}
    shown = identity_sandbox.control("GET", f"users/{made['user id']}")
    assert (shown["email"], shown["environment"]) == (made["e-mail"], "test")


def test_a_live_application_has_no_test_users() -> None:
    """Live and test are never mixed."""
    with configured(ENVIRONMENT="live"):
        assert "live" in run("identity_create_test_user", APP).error
