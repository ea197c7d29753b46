"""Starting and stopping the sandbox."""

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.sandbox.driver import Application, Person, Sandbox

pytestmark = pytest.mark.processes

COMMAND = [sys.executable, "-m", "django_identity.sandbox"]


def test_ready_within_three_seconds_whatever_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts fast, under its own settings, and stops cleanly, leaving no file behind."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a.site.of.its.own")
    spent = seconds_of_children()
    with Sandbox() as sandbox:
        assert sandbox.control("GET", "health") == {"status": "ready"}
        assert sandbox.lines[1].endswith("/api/v1")
        assert sandbox.stop() == 0
    assert seconds_of_children() - spent < 3


def seconds_of_children() -> float:
    """The processor's time, for on a busy machine the clock says nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_taken_port_is_a_clear_message(sandbox: Sandbox) -> None:
    """A port in use ends the start with exit code 2."""
    port = sandbox.origin.rsplit(":", 1)[1]
    result = subprocess.run(
        [*COMMAND, "--port", port], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_impossible_port_is_a_clear_message(port: str) -> None:
    """Not every number is a port."""
    result = subprocess.run(
        [*COMMAND, f"--port={port}"], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 2
    assert "--port" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("option", ["--decoys=-1", "--webhook-timeout=101"])
def test_impossible_switch_is_a_clear_message(option: str) -> None:
    """A number that a switch does not take is named."""
    result = subprocess.run(
        [*COMMAND, "--port=0", option], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 2
    assert f"cannot be {option.partition('=')[2]}" in result.stderr
    assert "Traceback" not in result.stderr


def test_kept_database_survives_a_restart(tmp_path: Path) -> None:
    """People, applications and keys are there again after a restart with ``--database``."""
    path = str(tmp_path / "kept.sqlite3")
    with Sandbox("--database", path) as first:
        person, application = Person(first, verified=True), Application(first)
        kid = first.control("GET", "keys")["signing"]
    with Sandbox("--database", path) as second:
        person.sandbox = application.sandbox = second
        person.browser = second.open_browser()
        assert person.tokens_for(application)["access_token"]
        assert second.control("GET", "keys")["signing"] == kid


def test_foreign_database_is_refused(tmp_path: Path) -> None:
    """A database with other tables is not touched."""
    path = tmp_path / "other.sqlite3"
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sqlite3,sys; sqlite3.connect(sys.argv[1]).execute('create table t (x)')",
            path,
        ],
        check=True,
    )
    result = subprocess.run(
        [*COMMAND, "--port", "0", "--database", path],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == 2
    assert "another version" in result.stderr


def test_switches_are_options() -> None:
    """Each switch can be set on the command line."""
    chosen = {
        "token_subject": "sub",
        "users_me": False,
        "claims_iat": False,
        "decoys": 2,
        "connect_signature": "jws",
        "connect_nested": False,
        "event_details": False,
        "event_timestamp": "seconds",
        "event_json": "indented",
        "parallel_deliveries": 3,
        "webhook_timeout": 4,
    }
    with Sandbox(*map(option, chosen.items())) as sandbox:
        assert sandbox.control("GET", "switches").items() >= chosen.items()


def option(switch: tuple[str, object]) -> str:
    name, value = switch[0].replace("_", "-"), switch[1]
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={value}"


def test_temporary_database_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays behind a sandbox that was stopped."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Sandbox() as sandbox:
        assert os.listdir(tmp_path)
        sandbox.control("GET", "keys")
    assert os.listdir(tmp_path) == []


def test_other_machines_cannot_control_it() -> None:
    """The control API answers loopback addresses only, also when the sandbox listens on all."""
    address = socket.gethostbyname(socket.gethostname())
    if address.startswith("127."):
        pytest.skip("This machine has no address but the loopback one.")
    with Sandbox("--host", "0.0.0.0") as sandbox:
        port = sandbox.origin.rsplit(":", 1)[1]
        url = f"http://{address}:{port}/sandbox/health"
        assert httpx.get(url, headers={"Host": "127.0.0.1"}).status_code == 403
        assert sandbox.control("GET", "health")
