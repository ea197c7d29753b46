"""Real Celery workers: started, stopped, and in the end killed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.concurrency import ROOT

COMMAND = [
    sys.executable,
    "-m",
    "celery",
    "--quiet",
    "-A",
    "tests.integration.worker_app",
    "worker",
    "--loglevel",
    "INFO",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
]
# Without any sign of life: a busy machine may take minutes over what an idle one does in seconds.
PATIENCE = 240.0
LOG_END = 6000


@dataclass
class Workers:
    """``size`` workers, each with ``pool``."""

    environment: dict[str, str] = field(repr=False)
    log: Path
    size: int = 2
    pool: tuple[str, ...] = ("--pool", "prefork", "--concurrency", "2")
    _mains: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _names: Iterator[int] = field(default_factory=count, repr=False)

    def start(self) -> None:
        """Bring the number of workers up to ``size``; what they say goes to ``log``."""
        while len(self._mains) < self.size:
            # Of its own: RabbitMQ keeps the queue of a name for the connection that declared it.
            name = f"worker-{os.getpid()}-{next(self._names)}@%h"
            with self.log.open("ab") as log:
                # A group of its own, so that a machine that dies takes its pool along.
                main = subprocess.Popen(
                    [*COMMAND, *self.pool, "--hostname", name],
                    cwd=ROOT,
                    env=self.environment,
                    start_new_session=True,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            self._mains.append(main)

    def are_alive(self) -> bool:
        return all(main.poll() is None for main in self._mains)

    def stop(self) -> None:
        """Let them finish what they are at."""
        for main in self._mains:
            main.terminate()
        for main in self._mains:
            try:
                main.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(
                    f"a worker does not end: {self.log_end()}",
                ) from None
        self._mains.clear()

    def log_end(self) -> str:
        return self.log.read_text("utf-8", "replace")[-LOG_END:]

    def end(self) -> None:
        """Whatever happened: leave none behind."""
        for main in self._mains:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(main.pid, signal.SIGKILL)
            main.wait()
        self._mains.clear()
