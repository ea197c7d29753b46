"""``python -m tests.sabotage`` works in copies, and leaves nothing, also after Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sabotage.sabotage import PACKAGE
from tests.sabotage.workshop import ROOT

# It copies the tree, and starts Django.
pytestmark = pytest.mark.integration

LONGEST = 120.0


def texts() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in PACKAGE.rglob("*.py")}


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path, stop: int) -> None:
    before = texts()
    command = subprocess.Popen(
        [sys.executable, "-m", "tests.sabotage", "checks"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    ends_at = time.monotonic() + LONGEST
    # pytest runs in a copy.
    while not list(tmp_path.glob("*/*/output")):
        assert command.poll() is None
        assert time.monotonic() < ends_at
        time.sleep(0.05)
    command.send_signal(stop)
    _, told = command.communicate(timeout=LONGEST)
    assert told == "Stopped.\n"
    assert command.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert texts() == before
