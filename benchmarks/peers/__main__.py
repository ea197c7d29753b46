"""Install the built package and its peers, measure all of them in turn, print one table.

CPU milliseconds and queries of one piece of work, at the median. A ratio above 1: this package
takes less than the peer.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = Path.home() / ".cache" / "django-identity-peers" / "venv"
ROUNDS = 30
AT_ONCE = 8  # pieces of work before the next contender's turn
WORK = {
    "sign_in": (
        "ours",
        "ours_all",
        "allauth",
        "allauth_tokens",
        "social",
        "oidc",
        "authlib",
    ),
    "webhook": ("ours_all", "dj_stripe"),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder))
        print("| work | package | CPU (ms) | queries | ratio |\n|---|---|--:|--:|--:|")  # noqa: T201
        with started(python, folder, "service") as service:
            assert service.stdout is not None
            origin = service.stdout.readline().strip()
            for work, peers in WORK.items():
                for row in in_turn(python, folder, work, peers, SERVICE=origin):
                    print(row)  # noqa: T201
            service.terminate()


def environment(folder: Path) -> str:
    """The pinned peers, kept for the next run, with the wheel of this checkout as it is now."""
    python = str(KEPT / "bin" / "python")
    if not Path(python).exists():
        run(sys.executable, "-m", "venv", str(KEPT))
    run(python, "-m", "pip", "install", "-q", "-r", str(HERE / "requirements.txt"))
    ignored = shutil.ignore_patterns("__pycache__")
    source = folder / "source"
    shutil.copytree(
        ROOT / "django_identity",
        source / "django_identity",
        ignore=ignored,
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--force-reinstall",
        "--no-deps",
        str(source),
    )
    run(python, "-m", "pip", "install", "-q", str(source))
    shutil.copytree(HERE, folder / "benchmarks" / "peers", ignore=ignored)
    return python


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def in_turn(
    python: str,
    folder: str,
    work: str,
    peers: Sequence[str],
    **given: str,
) -> Iterator[str]:
    with ExitStack() as stack:
        workers = {
            peer: stack.enter_context(
                started(python, folder, "worker", work, PEER=peer, **given),
            )
            for peer in peers
        }
        queries = {peer: told(worker)[0] for peer, worker in workers.items()}
        taken: dict[str, list[float]] = {peer: [] for peer in peers}
        for _ in range(ROUNDS):
            for peer, worker in workers.items():
                assert worker.stdin is not None
                print(AT_ONCE, file=worker.stdin, flush=True)
                taken[peer] += told(worker)
    ours = median(taken[peers[0]])
    for peer in peers:
        cpu = median(taken[peer])
        yield f"| {work} | {peer} | {cpu:.1f} | {queries[peer]} | {cpu / ours:.2f} |"


def told(worker: subprocess.Popen[str]) -> list[Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"{worker.args} ended")
    found: list[Any] = json.loads(line)
    return found


@contextmanager
def started(
    python: str,
    folder: str,
    module: str,
    *arguments: str,
    **given: str,
) -> Iterator[subprocess.Popen[str]]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON")
    }
    with subprocess.Popen(
        [python, "-m", f"benchmarks.peers.{module}", *arguments],
        cwd=folder,
        env={**kept, "DJANGO_SETTINGS_MODULE": "benchmarks.peers.sites", **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


if __name__ == "__main__":
    main()
