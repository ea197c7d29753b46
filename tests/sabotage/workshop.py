"""Copies of the tree, and pytest in them. Nothing of either is left at the end."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.sabotage.sabotage import PACKAGE, Sabotage

ROOT = Path(__file__).resolve().parents[2]
#: What tests read. Those of the sabotages themselves would notice every change.
COPIED = ("tests", "docs", "example_project", "manage.py", "pyproject.toml")
COPIED_FILES = ("*.md", "LICENSE", ".importlinter")
NOT_COPIED = shutil.ignore_patterns("sabotage", "node_modules", ".*_cache", "_build")
PYTEST = (
    *("-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE"),
    *("-p", "no:cacheprovider"),
)
#: Of the servers of another run, and of the process that starts this one.
NOT_PASSED_ON = ("DATABASE_URL", "CELERY_BROKER_URL", "PYTHONDONTWRITEBYTECODE")


class NotRun(Exception):
    """pytest did not come to an end. The message says why."""


@dataclass(slots=True)
class Workshop:
    """Runs tests in copies below ``folder``. ``seconds``: the time limit of one run."""

    folder: Path
    seconds: float
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    is_closed: bool = False

    def first_failure(self, tests: Sequence[str], sabotage: Sabotage | None) -> str:
        """The first of ``tests`` that fails in a copy with the sabotage. Empty if none does.

        Raises ``NotRun``.
        """
        with TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as name:
            copy = Path(name) / "tree"
            _copy_tree(copy)
            if sabotage is not None:
                sabotage.commit(copy / PACKAGE.name)
            output = Path(name) / "output"
            status = self._run(copy, output, tests)
            lines = output.read_text(errors="replace").splitlines()
        for line in lines:
            kind, _, test = line.partition(" ")
            if kind in ("FAILED", "ERROR"):
                return test.partition(" - ")[0]
        if status != 0:
            raise NotRun(f"pytest ended with {status}: {''.join(lines[-1:])}")
        return ""

    def close(self) -> None:
        """End the running tests with all that they have started, and run no others."""
        self.is_closed = True
        for process in list(self.running):
            _kill(process)

    def _run(self, copy: Path, output: Path, tests: Sequence[str]) -> int:
        temporary = copy.parent / "tmp"
        temporary.mkdir()
        passed_on = os.environ.keys() - NOT_PASSED_ON
        environment = {name: os.environ[name] for name in passed_on}
        environment |= {"PYTHONPATH": str(copy), "TMPDIR": str(temporary)}
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, *PYTEST, *tests],
                cwd=copy,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.add(process)
        try:
            if self.is_closed:
                raise NotRun("stopped")
            return process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            raise NotRun(f"took more than {self.seconds:.0f} s") from None
        finally:
            _kill(process)
            self.running.discard(process)


def _copy_tree(copy: Path) -> None:
    """With the compiled files, which stay good: a copy has the times of the original."""
    copy.mkdir()
    files = [path for pattern in COPIED_FILES for path in ROOT.glob(pattern)]
    for path in (PACKAGE, *files, *(ROOT / name for name in COPIED)):
        if path.is_dir():
            shutil.copytree(path, copy / path.name, ignore=NOT_COPIED)
        else:
            shutil.copy2(path, copy / path.name)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the whole session of the process: tests start processes of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
