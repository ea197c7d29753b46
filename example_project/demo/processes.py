"""The two processes of the demo: the sandbox and the site."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parent.parent.parent
READY_WITHIN = 20.0


class DemoError(Exception):
    """Something that a person can mend; the message says how."""


def free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def require_free(port: int, option: str) -> None:
    """Raises ``DemoError`` if somebody listens on ``port`` already."""
    with closing(socket.socket()) as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise DemoError(f"Port {port} is taken. Choose another one with {option}.")


@contextmanager
def running(*arguments: str, ready_at: str, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """A Python process that answers at ``ready_at``; it ends with the block."""
    process = subprocess.Popen(  # noqa: S603  our own interpreter and arguments
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(process, ready_at)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], address: str) -> None:
    give_up = time.monotonic() + READY_WITHIN
    while time.monotonic() < give_up and process.poll() is None:
        try:
            if httpx.get(address, trust_env=False).status_code < 500:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise DemoError(f"Nothing answers at {address}.")
