"""The processes of the demo: the sandbox, the site and its worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parent.parent.parent
READY_WITHIN = 120.0
ENDED_WITHIN = 1.0
#: The end of what a process wrote, in characters.
MOST_SAID = 4000


class DemoError(Exception):
    """A problem that the user can fix. The message says how."""


def free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def require_free(port: int, option: str) -> None:
    """Raises ``DemoError`` if another process listens on ``port``."""
    with closing(socket.socket()) as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise DemoError(f"Port {port} is taken. Choose another one with {option}.")


@contextmanager
def running(
    *arguments: str,
    ready_at: str | None,
    env: Mapping[str, str] | None = None,
    is_loud: bool = False,
) -> Iterator[None]:
    """Run a Python process until the block ends. If it serves, wait until ``ready_at`` answers.

    Its children are stopped too, so that a slow worker does not leave its beat running.
    ``is_loud``: it writes where this process does. Else what it writes is kept for the message of
    ``DemoError``, which is raised if it does not get ready.
    """
    with tempfile.TemporaryFile() as kept:
        output = None if is_loud else kept
        process = subprocess.Popen(  # noqa: S603  our own interpreter and arguments
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            if ready_at is not None and not _answers(process, ready_at):
                kept.seek(0)
                said = kept.read().decode(errors="replace")[-MOST_SAID:]
                raise DemoError(f"Nothing answers at {ready_at}.\n{said}".rstrip())
            yield
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=ENDED_WITHIN)
    # The process group has the process's id and lives as long as any child.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finished(*arguments: str, env: Mapping[str, str]) -> bool:
    """Run a Python process to its end. Returns whether it exited with 0."""
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False)  # noqa: S603
    return ended.returncode == 0


def _answers(process: subprocess.Popen[bytes], address: str) -> bool:
    """Wait until ``address`` answers. Returns whether it does."""
    give_up = time.monotonic() + READY_WITHIN
    # One client for all attempts, because each new client loads the certificates.
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < give_up and process.poll() is None:
            try:
                if client.get(address).status_code < 500:
                    return True
            except httpx.TransportError:
                time.sleep(0.05)
    return False
