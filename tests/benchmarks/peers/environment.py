"""The environment of the peers: the pinned requirements and the wheel built from this checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
REQUIREMENTS = HERE / "requirements.txt"
SOURCES = ("django_identity", "pyproject.toml", "README.md", "LICENSE")
IGNORED = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True, slots=True)
class Room:
    """A folder away from the checkout, in which the environment's Python runs."""

    python: Path
    folder: Path

    def module(self, name: str, *arguments: str) -> list[str]:
        return [str(self.python), "-m", f"tests.benchmarks.peers.{name}", *arguments]

    def variables(self, **given: str) -> dict[str, str]:
        """The environment of a process: nothing of a virtual environment around it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        settings = "tests.benchmarks.peers.settings"
        return {**kept, "DJANGO_SETTINGS_MODULE": settings, **given}


@contextmanager
def room() -> Iterator[Room]:
    """The environment, kept for the next run, with the wheel of this checkout as it is now."""
    kept = _cache_folder()
    python = kept / "venv" / "bin" / "python"
    if not (kept / "complete").exists():
        shutil.rmtree(kept, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(kept / "venv"))
        _run(str(python), "-m", "pip", "install", "-q", "-r", str(REQUIREMENTS))
        (kept / "complete").touch()
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for name in SOURCES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            source = folder / "source" / name
            source.parent.mkdir(exist_ok=True)
            options = {"ignore": IGNORED} if (ROOT / name).is_dir() else {}
            copy(ROOT / name, source, **options)
        pip = (str(python), "-m", "pip")
        _run(*pip, "wheel", "-q", "--no-deps", "--wheel-dir", given, str(folder / "source"))
        wheel = next(folder.glob("*.whl"))
        _run(*pip, "install", "-q", str(wheel))
        _run(*pip, "install", "-q", "--no-deps", "--force-reinstall", str(wheel))
        tests = folder / "room" / "tests"
        shutil.copytree(HERE.parent, tests / "benchmarks", ignore=IGNORED)
        (tests / "__init__.py").touch()
        yield Room(python, folder / "room")


def _cache_folder() -> Path:
    """One folder for each Python and each content of the requirements."""
    told = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    name = hashlib.sha256(told.encode()).hexdigest()[:12]
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return caches / "django-identity-peers" / name


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)
