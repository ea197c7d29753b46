"""The demo proves itself."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from example_project.circle.management.commands.demo import Command
from example_project.demo.processes import HOST, free_port
from tests.sandbox.receiver import until

ROOT = Path(__file__).resolve().parent.parent.parent
CHECK = [sys.executable, "manage.py", "demo", "--check"]


def surroundings() -> dict[str, Any]:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    return {"cwd": ROOT, "env": env, "text": True}


def test_the_whole_walk_holds():
    """Over real sockets, with exit code 0. It says how soon the site obeyed each event."""
    how = {"capture_output": True, "timeout": 900, "check": False}
    walked = subprocess.run(CHECK, **surroundings(), **how)
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert walked.stdout.count("ok  ") >= 45
    assert len(re.findall(r"ok  .*, \d+ ms later\n", walked.stdout)) == 5
    for said in (
        "ok  pasted with words around it: whose code it is\n",
        "ok  verified there, a new code opens /loans/\n",
        "and left a receipt",
        "nothing in the site's database names the person",
        "ok  the worker re-fetched the claims when they were due\n",
    ):
        assert said in walked.stdout


def test_a_walk_that_is_stopped_did_not_hold():
    """Whoever runs it in CI asks for its exit code."""
    port = free_port()
    stopped = [*CHECK, "--sandbox-port", str(port)]
    with subprocess.Popen(stopped, **surroundings(), stdout=subprocess.PIPE) as walking:
        until(lambda: is_taken(port), seconds=120)
        walking.terminate()
        assert walking.stdout is not None
        said = walking.stdout.read()
    assert walking.returncode == 1
    assert "All of it holds" not in said
    assert not is_taken(port)


def is_taken(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.fixture
def _own_ending() -> Iterator[None]:
    """The command takes the process's SIGTERM for itself."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_own_ending")
@pytest.mark.parametrize("option", ["--port", "--sandbox-port"])
def test_a_taken_port_is_named(option):
    """A port that is taken gets a message that names the option; nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"Port {port} is taken.* {option}"):
            call_command(Command(), "--check", option, str(port))
