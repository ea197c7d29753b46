"""The command that sends one event by hand."""

import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from django_identity.sandbox.events.trigger import main
from tests.sandbox.receiver import SECRET, Receiver
from tests.service.authority import Authority

TYPES = [
    "kyc.verified",
    "kyc.rejected",
    "consent.granted",
    "consent.revoked",
    "claim.issued",
    "claim.revoked",
    "data.deletion_requested",
]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "django_identity.sandbox", "trigger", *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
        env={"IDENTITY_WEBHOOK_SECRET": SECRET, "PYTHONPATH": "."},
    )


@dataclass(frozen=True, slots=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


Trigger = Callable[..., Result]


@pytest.fixture
def trigger(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Trigger:
    """Runs the command in this process."""
    monkeypatch.setenv("IDENTITY_WEBHOOK_SECRET", SECRET)

    def run(*arguments: str) -> Result:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(str(end.code))
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run


@pytest.mark.parametrize("event_type", TYPES)
def test_each_event_can_be_sent(trigger: Trigger, receiver: Receiver, event_type: str) -> None:
    """It is signed over its bytes, names the person, and an acknowledgement is exit code 0."""
    result = trigger(event_type, "--to", receiver.url, "--user-id", "u-1")
    assert result.returncode == 0, result.stderr
    assert "200 acknowledged" in result.stdout
    assert '{"received": true}' in result.stdout
    (request,) = receiver.requests
    assert request.is_signed_with(SECRET)
    assert request.event["event_type"] == event_type
    assert request.event["data"]["user_id"] == "u-1"
    assert SECRET not in result.stdout


def test_everything_can_be_chosen(receiver: Receiver) -> None:
    """Id, time, fields and form are sent as given, a secret on the command line wins."""
    result = command(
        "claim.revoked",
        *("--to", receiver.url, "--secret", "on the line", "--event-id", "evt_A"),
        *("--timestamp", "2030-01-01T00:00:00Z", "--indented"),
        *("--field", "claim_type=unique_human", "--field", "depth:=[1, null]"),
    )
    assert result.returncode == 0
    (request,) = receiver.requests
    assert request.is_signed_with("on the line")
    assert b"\n" in request.body
    assert request.event["event_id"] == "evt_A"
    assert request.event["timestamp"] == "2030-01-01T00:00:00Z"
    assert request.event["data"]["claim_type"] == "unique_human"
    assert request.event["data"]["depth"] == [1, None]


@pytest.mark.parametrize("status", [301, 401, 500])
def test_refusal_is_exit_code_1(trigger: Trigger, receiver: Receiver, status: int) -> None:
    """Status and body of the refusal are printed, and nothing is attempted again."""
    receiver.answers, receiver.body = [status], b"go away"
    result = trigger("kyc.verified", "--to", receiver.url)
    assert result.returncode == 1
    assert f"{status} not acknowledged" in result.stdout
    assert "go away" in result.stdout
    assert ("not followed" in result.stdout) is (status == 301)
    assert len(receiver.requests) == 1


def test_nobody_there_is_exit_code_1(trigger: Trigger) -> None:
    """A refused connection is told in a sentence."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = trigger("kyc.verified", "--to", f"http://127.0.0.1:{port}/")
    assert result.returncode == 1
    assert "refused" in result.stdout
    assert "Traceback" not in result.stderr


def test_unlisted_type_is_sent_if_meant(trigger: Trigger, receiver: Receiver) -> None:
    """A slip of the pen is not sent; with the option anything is."""
    assert trigger("consent.revokd", "--to", receiver.url).returncode == 2
    assert trigger("consent.revokd", "--to", receiver.url, "--any-type").returncode == 0
    assert receiver.types == ["consent.revokd"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["consent.revokd", "--to", "http://127.0.0.1:1/"], "consent.revoked"),
        (["kyc.verified"], "--to"),
        (["kyc.verified", "--to", "shop.example/webhooks"], "cannot be sent to"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--field", "x"], "KEY=VALUE"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--field", "x:=y"], "not JSON"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--timeout", "0"], "--timeout"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--timeout", "nan"], "--timeout"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--timeout", "1e400"], "--timeout"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--user-id", "\udcff"], "UTF-8"),
        (["kyc.verified", "--to", "http://127.0.0.1:1/", "--secret", "\udcff"], "UTF-8"),
        ([], "EVENT"),
    ],
)
def test_mistake_on_the_command_line_is_told(
    trigger: Trigger, arguments: list[str], words: str
) -> None:
    """What is wrong is said in a line, with exit code 2."""
    result = trigger(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_missing_secret_is_told(trigger: Trigger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent unsigned."""
    monkeypatch.delenv("IDENTITY_WEBHOOK_SECRET")
    result = trigger("kyc.verified", "--to", "http://127.0.0.1:1/")
    assert result.returncode == 2
    assert "--secret" in result.stderr


def test_an_https_receiver_of_a_private_authority(trigger: Trigger, tmp_path: Path) -> None:
    """Its authority is named; without that, no event leaves."""
    authority = Authority(tmp_path)
    with Receiver(authority.server_context()) as receiver:
        options = ("consent.revoked", "--to", receiver.url)
        refused = trigger(*options)
        assert (refused.returncode, receiver.requests) == (1, [])
        assert "TLS failed" in refused.stdout
        assert trigger(*options, "--webhook-ca", str(authority.file)).returncode == 0
        assert receiver.types == ["consent.revoked"]


@pytest.mark.parametrize("name", ["nothing.pem", "empty.pem"])
def test_an_unusable_ca_file_is_a_clear_message(
    trigger: Trigger, tmp_path: Path, name: str
) -> None:
    """Before anything is sent."""
    (tmp_path / "empty.pem").touch()
    path = str(tmp_path / name)
    ended = trigger("consent.revoked", "--to", "https://127.0.0.1/", "--webhook-ca", path)
    assert ended.returncode == 2
    assert path in ended.stderr
